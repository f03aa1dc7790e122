#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddprof {

// "a b" -> "a%20b": every character that could mean something in a URL (RFC 3986).
std::string percent_encoded(std::string_view text);

// None where a percent sign has no two hexadecimal digits behind it.
std::optional<std::string> percent_decoded(std::string_view text);
// There it stays as it is.
std::string percent_decoded_leniently(std::string_view text);

// The value of an Authorization header (RFC 7617).
std::string basic_auth(std::string_view user, std::string_view password);

}  // namespace ddprof
