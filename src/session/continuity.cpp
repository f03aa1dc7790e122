#include "session/continuity.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// Nanoseconds: 36 years of CPU time. Four of them still add up.
bool is_amount(std::int64_t value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60U;
  return value >= -kMost && value <= kMost;
}

bool is_credible(const SessionHandover& handover, Nanoseconds now, Nanoseconds latest_start) {
  constexpr std::int64_t kMostOffset = std::int64_t{1} << 62U;
  const bool are_times = handover.started >= 0 && handover.started <= now.count() &&
                         handover.period_started >= 0 && handover.period_started <= latest_start.count() &&
                         handover.unix_offset >= -kMostOffset && handover.unix_offset <= kMostOffset;
  const auto amounts = {handover.told_by_samples,
                        handover.told_by_estimates,
                        handover.accounted,
                        handover.sampled,
                        handover.stolen_before,
                        handover.observed,
                        handover.counters.excluded.cpu,
                        handover.counters.over_limit.cpu};
  return are_times && std::all_of(amounts.begin(), amounts.end(), is_amount) &&
         std::all_of(handover.losses.begin(), handover.losses.end(), is_amount);
}

}  // namespace

SessionHandover believed(const SessionHandover& handover, Nanoseconds now, Nanoseconds latest_start) {
  return is_credible(handover, now, latest_start) ? handover : SessionHandover{.sequence = handover.sequence};
}

}  // namespace ddprof
