#include "encode/human_value.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <span>

namespace ddprof {

namespace {

struct Scale {
  double divisor;
  std::string_view unit;
};

constexpr std::array<Scale, 4> kTimes{{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
constexpr std::array<Scale, 5> kBytes{
    {{1, "B"}, {1024.0, "KiB"}, {1048576.0, "MiB"}, {1073741824.0, "GiB"}, {1099511627776.0, "TiB"}}};

// The units of time that pprof files are written in, in nanoseconds.
constexpr std::array<Scale, 4> kTimeUnits{
    {{1, "nanoseconds"}, {1e3, "microseconds"}, {1e6, "milliseconds"}, {1e9, "seconds"}}};

// Three digits: 1.23, 12.3, 123.
std::string scaled(double value, std::span<const Scale> scales) {
  const Scale* chosen = &scales.front();
  for (const Scale& scale : scales) {
    if (std::abs(value) >= scale.divisor * 0.9995) chosen = &scale;
  }
  const double number = value / chosen->divisor;
  const int decimals = chosen->divisor == 1       ? 0
                       : std::abs(number) < 9.995 ? 2
                       : std::abs(number) < 99.95 ? 1
                                                  : 0;
  return fmt::format("{:.{}f} {}", number, decimals, chosen->unit);
}

}  // namespace

std::string human_value(std::int64_t value, std::string_view unit) {
  for (const Scale& time : kTimeUnits) {
    if (unit == time.unit) return scaled(static_cast<double>(value) * time.divisor, kTimes);
  }
  if (unit == "bytes") return scaled(static_cast<double>(value), kBytes);
  return human_count(value);
}

std::string human_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string human_duration(std::int64_t nanoseconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  const double seconds = static_cast<double>(nanoseconds) / 1e9;
  if (seconds < 2 * kMinute) return human_value(nanoseconds, "nanoseconds");
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{:.1f} h", seconds / kHour);
  return fmt::format("{:.1f} d", seconds / kDay);
}

std::string human_percent(std::int64_t part, std::int64_t whole) {
  const double percent = whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return fmt::format("{:.1f} %", percent);
}

std::string human_time(std::int64_t unix_ns) {
  const std::time_t seconds = unix_ns / 1'000'000'000;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  std::array<char, 64> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text.data(), size};
}

std::string plural(std::size_t count, std::string_view noun, std::string_view nouns) {
  return fmt::format("{} {}", human_count(static_cast<std::int64_t>(count)), count == 1 ? noun : nouns);
}

}  // namespace ddprof
