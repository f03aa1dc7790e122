#include "export/retry_after.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace ddprof {

namespace {

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<unsigned> month_of(std::string_view name) {
  constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto* const found = std::find(kMonths.begin(), kMonths.end(), name);
  if (found == kMonths.end()) return std::nullopt;
  return static_cast<unsigned>(found - kMonths.begin()) + 1;
}

// The name of the day is not looked at.
std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) {
  constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";
  if (text.size() != kForm.size() || text.substr(3, 2) != ", " || text[19] != ':' || text[22] != ':' ||
      text.substr(25) != " GMT")
    return std::nullopt;
  const auto day = whole_number(text.substr(5, 2)), year = whole_number(text.substr(12, 4)),
             hour = whole_number(text.substr(17, 2)), minute = whole_number(text.substr(20, 2)),
             second = whole_number(text.substr(23, 2));
  const auto month = month_of(text.substr(8, 3));
  if (!day || !month || !year || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

}  // namespace

std::optional<std::chrono::seconds> parse_retry_after(std::string_view text, Nanoseconds unix_now) {
  if (const auto seconds = whole_number(text)) return std::chrono::seconds(*seconds);
  const auto date = parse_http_date(text);
  if (!date) return std::nullopt;
  const auto left = date->time_since_epoch() - std::chrono::floor<std::chrono::seconds>(unix_now);
  return std::max(left, std::chrono::seconds(0));
}

}  // namespace ddprof
