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

}  // namespace ddprof
