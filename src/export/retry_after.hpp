#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "base/ids.hpp"

namespace ddprof {

// What a header Retry-After says (RFC 9110, section 10.2.3): a number of seconds, or a date in the one form
// that may still be written ("Sun, 06 Nov 1994 08:49:37 GMT"). A date that has passed is 0 seconds from now.
// Nothing when it is neither.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, Nanoseconds unix_now);

}  // namespace ddprof
