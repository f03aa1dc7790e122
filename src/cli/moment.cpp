#include "cli/moment.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>

namespace ddprof {

namespace {

// Takes digits off the front: exactly `count` of them.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  int number = 0;
  if (text.size() < count) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + count, number);
  if (error != std::errc{} || end != text.data() + count || number < 0) return std::nullopt;
  text.remove_prefix(count);
  return number;
}

bool take_letter(std::string_view& text, std::string_view letters) {
  if (text.empty() || letters.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// ".25": up to nine digits count.
Nanoseconds take_fraction(std::string_view& text) {
  std::int64_t nanoseconds = 0, scale = 100'000'000;
  if (text.empty() || text.front() != '.') return {};
  text.remove_prefix(1);
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), scale /= 10)
    nanoseconds += (text.front() - '0') * scale;
  return Nanoseconds(nanoseconds);
}

// "Z" or "+01:00"
std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
  if (take_letter(text, "Zz")) return std::chrono::minutes(0);
  const bool is_west = !text.empty() && text.front() == '-';
  if (!take_letter(text, "+-")) return std::nullopt;
  const auto hours = take_digits(text, 2);
  if (!hours || !take_letter(text, ":")) return std::nullopt;
  const auto minutes = take_digits(text, 2);
  if (!minutes) return std::nullopt;
  const std::chrono::minutes offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return is_west ? -offset : offset;
}

}  // namespace

std::optional<Nanoseconds> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  const auto years = take_digits(text, 4);
  if (!years || !take_letter(text, "-")) return std::nullopt;
  const auto months = take_digits(text, 2);
  if (!months || !take_letter(text, "-")) return std::nullopt;
  const auto days_of_month = take_digits(text, 2);
  if (!days_of_month || !take_letter(text, "Tt ")) return std::nullopt;
  const auto hour = take_digits(text, 2);
  if (!hour || !take_letter(text, ":")) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || !take_letter(text, ":")) return std::nullopt;
  const auto second = take_digits(text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const Nanoseconds fraction = take_fraction(text);
  const auto offset = take_offset(text);
  const year_month_day date(year(*years), month(static_cast<unsigned>(*months)),
                            day(static_cast<unsigned>(*days_of_month)));
  constexpr int kFirstYear = 1900, kLastYear = 2200;  // beyond, nanoseconds overflow
  if (!offset || !text.empty() || !date.ok() || *years < kFirstYear || *years > kLastYear)
    return std::nullopt;
  return sys_days(date).time_since_epoch() + hours(*hour) + minutes(*minute) + seconds(*second) - *offset +
         fraction;
}

Result<Nanoseconds> parse_moment(std::string_view text, Nanoseconds now) {
  if (const auto moment = parse_rfc3339(text)) return *moment;
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::int64_t seconds = unit == "s"   ? 1
                               : unit == "m" ? 60
                               : unit == "h" ? 3600
                               : unit == "d" ? 86400
                                             : 0;
  constexpr std::int64_t kMost = 100LL * 366 * 86400;  // a century
  if (error == std::errc{} && seconds > 0 && count >= 0 && count <= kMost / seconds)
    return now - std::chrono::seconds(count * seconds);
  return make_error(ErrorCode::invalid_argument,
                    "{}: not a time; write 30s, 10m, 2h, 1d or 2026-11-16T06:57:55Z", text);
}

}  // namespace ddprof
