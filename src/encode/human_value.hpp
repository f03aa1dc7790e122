#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ddprof {

// "1.52 s", "310 ms", "4.1 MiB", "12,345": three digits are enough for a person.
std::string human_value(std::int64_t value, std::string_view unit);

// "12,345"
std::string human_count(std::int64_t count);

// "20 ms", "45 s", "59 min", "3.5 h", "2.1 d"
std::string human_duration(std::int64_t nanoseconds);

// "12.3 %"
std::string human_percent(std::int64_t part, std::int64_t whole);

// "2023-11-14 22:13:20 UTC"
std::string human_time(std::int64_t unix_ns);

// "1 thread", "2 threads"
std::string plural(std::size_t count, std::string_view noun, std::string_view nouns);

// How many nanoseconds one "microseconds" is, and so on; none for what is not a unit of time.
[[nodiscard]] inline std::optional<std::int64_t> nanoseconds_per(std::string_view unit) {
  if (unit == "nanoseconds") return 1;
  if (unit == "microseconds") return 1'000;
  if (unit == "milliseconds") return 1'000'000;
  if (unit == "seconds") return 1'000'000'000;
  return std::nullopt;
}

}  // namespace ddprof
