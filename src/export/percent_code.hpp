#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddprof {

// "a b" -> "a%20b": every character that could mean something in a URL (RFC 3986).
std::string percent_encoded(std::string_view text);

// None where a percent sign has no two hexadecimal digits behind it.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace ddprof
