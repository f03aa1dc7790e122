#pragma once

#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"

namespace ddprof {

// "2026-11-16T06:57:55.5Z", "2026-11-16T07:57:55+01:00": Unix time.
std::optional<Nanoseconds> parse_rfc3339(std::string_view text);

// Such a time, or how long before `now`: 30s, 10m, 2h, 1d.
Result<Nanoseconds> parse_moment(std::string_view text, Nanoseconds now);

}  // namespace ddprof
