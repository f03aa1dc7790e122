#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ddprof {

// The length of the valid UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t utf8_sequence_length(std::string_view text);

[[nodiscard]] bool is_utf8(std::string_view text);

// File and symbol names are any bytes; protobuf strings are UTF-8. Each byte that is not becomes U+FFFD.
std::string to_utf8(std::string_view text);

// Appends `text` as a JSON string, in quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// Appends a range as a JSON array; `write(out, element)` writes one of its elements.
template <typename Range, typename Write>
void append_json_array(std::string& out, const Range& range, Write&& write) {
  out += '[';
  bool is_first = true;
  for (const auto& element : range) {
    if (!is_first) out += ',';
    is_first = false;
    write(out, element);
  }
  out += ']';
}

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
