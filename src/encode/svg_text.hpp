#pragma once

#include <string>
#include <string_view>

namespace ddprof {

// Foreign text in a file of XML.

// Without bytes that are no UTF-8, control characters and the codes that XML does not know: each becomes
// U+FFFD. Of more than 8 KiB the middle is cut out.
std::string clean_text(std::string_view text);

// Clean text as the content of an element or of an attribute.
std::string xml_text(std::string_view text);

// Clean text as a JSON string that is itself the content of an element: no character of it means something
// to a reader of XML or HTML.
void append_script_string(std::string& out, std::string_view text);

}  // namespace ddprof
