#include "session/continuity.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// Nanoseconds: 36 years of CPU time. Four of them still add up.
bool is_amount(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60U;
  return value >= -kMost && value <= kMost;
}

bool is_credible(const Legacy& legacy, Nanoseconds now, Nanoseconds latest_start) {
  constexpr std::int64_t kMostOffset = std::int64_t{1} << 62U;
  const bool are_times = legacy.started >= 0 && legacy.started <= now.count() && legacy.period_started >= 0 &&
                         legacy.period_started <= latest_start.count() &&
                         legacy.unix_offset >= -kMostOffset && legacy.unix_offset <= kMostOffset;
  const auto amounts = {legacy.told_by_samples, legacy.told_by_estimates, legacy.accounted,
                        legacy.sampled,         legacy.stolen_before,     legacy.looked_at,
                        legacy.excluded.cpu,    legacy.over_limit.cpu};
  return are_times && std::all_of(amounts.begin(), amounts.end(), is_amount) &&
         std::all_of(legacy.losses.begin(), legacy.losses.end(), is_amount);
}

}  // namespace

Legacy believed(const Legacy& legacy, Nanoseconds now, Nanoseconds latest_start) {
  return is_credible(legacy, now, latest_start) ? legacy : Legacy{.sequence = legacy.sequence};
}

}  // namespace ddprof
