#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ddprof {

// How many nanoseconds one "microseconds" is, and so on; none for what is not a unit of time.
[[nodiscard]] inline std::optional<std::int64_t> nanoseconds_per(std::string_view unit) {
  if (unit == "nanoseconds") return 1;
  if (unit == "microseconds") return 1'000;
  if (unit == "milliseconds") return 1'000'000;
  if (unit == "seconds") return 1'000'000'000;
  return std::nullopt;
}

}  // namespace ddprof
