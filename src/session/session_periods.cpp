#include <utility>

#include "base/clock.hpp"
#include "session/session.hpp"

// What a session tells of itself: to the profile of each period, to the summary, and to the worker after it.

namespace ddprof {

void Session::begin() {
  const bool is_first = inherited_.started == 0;
  const Nanoseconds now = monotonic_now();
  pace_.begin(now);
  started_ = is_first ? now : Nanoseconds(inherited_.started);
  period_started_ = is_first ? now : Nanoseconds(inherited_.period_started);
  sequence_ = inherited_.sequence;
  summary_.stacks = inherited_.stacks;
  for (std::size_t reason = 0; reason < kStopReasons; ++reason) {
    if (inherited_.stopped[reason] > 0)
      summary_.stopped[{static_cast<StopReason>(reason), ""}] = inherited_.stopped[reason];
  }
  choice_.resume(inherited_.excluded, inherited_.over_limit);
  if (cpu_) is_first ? cpu_->start() : cpu_->resume(inherited_);
  update_summary();
  told_ = summary_;
  if (is_first) {
    inherited_.started = started_.count();
    inherited_.period_started = period_started_.count();
    continuity_.commit(inherited_);
  }
}

Nanoseconds Session::unix_offset() {
  constexpr Nanoseconds kStep = std::chrono::milliseconds(100);
  const Nanoseconds offset = unix_now() - monotonic_now();
  const Nanoseconds known(inherited_.unix_offset);
  // Two clocks cannot be read at once. A period begins where the one before it ended, to the nanosecond,
  // unless somebody has set the clock.
  if (known.count() == 0 || std::chrono::abs(offset - known) > kStep) inherited_.unix_offset = offset.count();
  return Nanoseconds(inherited_.unix_offset);
}

Legacy Session::bequeath(Nanoseconds end) const {
  Legacy legacy = inherited_;
  legacy.sequence = sequence_;
  legacy.period_started = end.count();
  legacy.stacks = summary_.stacks;
  legacy.stopped = {};
  for (const auto& [key, count] : summary_.stopped)
    legacy.stopped[static_cast<std::size_t>(key.first)] += count;
  legacy.excluded = choice_.excluded();
  legacy.over_limit = choice_.over_limit();
  legacy.lost_records = summary_.collector.lost_records;
  legacy.throttled = summary_.collector.throttled;
  if (cpu_) cpu_->bequeath(legacy);
  return legacy;
}

ClosedPeriod Session::describe(AggregatedProfile profile) {
  ClosedPeriod period;
  const EventSpec& first = options_.events.front();
  period.sequence = sequence_++;
  period.visible_columns = columns_.visible;
  period.count_column = columns_.events.front().samples;
  for (ThreadKey thread : profile.threads) {
    period.labels.push_back(processes_.names(thread.pid, thread.tid, thread.incarnation));
  }
  period.files = files_.files();
  period.mappings = code_.representatives();
  period.unix_start = profile.start + unix_offset();
  period.period_type = first.label;
  period.period_unit = first.unit;
  period.period = first.sample_value() * cpu_budget_.factor();
  period.default_column = first.label;
  update_summary();
  period.comments = {"ddprof " DDPROF_VERSION, closing_line(summary_), "engine: " + summary_.engine};
  for (std::string& line : self_report(summary_)) period.comments.push_back(std::move(line));
  period.legacy = bequeath(profile.end);
  if (!options_.service.empty()) period.comments.push_back("service: " + options_.service);
  period.profile = std::move(profile);
  return period;
}

void Session::update_summary() {
  summary_.duration = monotonic_now() - started_;
  summary_.collector = collector_.counters();
  summary_.collector.lost_records += inherited_.lost_records;
  summary_.collector.throttled += inherited_.throttled;
  summary_.slow_down = cpu_budget_.factor();
  for (std::size_t end = 0; end < kWorkerEnds; ++end) summary_.worker_ends[end] = continuity_.ends[end];
  summary_.engine = collector_.describe();
  summary_.notices = options_.notices;
  for (const std::string& notice : collector_.notices()) summary_.notices.push_back(notice);
  if (cpu_) {
    summary_.exact_cpu = cpu_->totals().exact;
    summary_.sampled_cpu = cpu_->totals().sampled;
    summary_.losses = cpu_->totals().losses;
  }
  summary_.excluded = choice_.excluded();
  summary_.over_limit = choice_.over_limit();
  summary_.outcome = finisher_.outcome();
  summary_.outcome.sent += inherited_.sent;
  summary_.outcome.dropped += inherited_.dropped;
  summary_.outcome.failed += inherited_.failed;
  summary_.outcome.delivery.dropped += inherited_.spool_dropped;
  measure_self(summary_);
  summary_.own_cpu += Nanoseconds(continuity_.earlier_cpu);
}

}  // namespace ddprof
