#include "session/periods.hpp"

#include <algorithm>

namespace ddprof {

void Periods::begin(const SessionHandover& earlier, Nanoseconds now,
                    std::optional<Nanoseconds> paused_since) {
  is_first_worker_ = earlier.started == 0;
  started_ = is_first_worker_ ? now : Nanoseconds(earlier.started);
  sequence_ = earlier.sequence;
  unix_offset_ = Nanoseconds(earlier.unix_offset);
  if (is_first_worker_) {
    unix_offset();  // a worker that tells the same period again must give it the same time
    cadence_.begin(now);
  } else {
    cadence_.begin(Nanoseconds(earlier.period_started), now, paused_since);
  }
}

std::optional<Nanoseconds> Periods::next() const {
  auto moment = cadence_.next();
  if (!options_.duration) return moment;
  const Nanoseconds end = started_ + *options_.duration;
  return moment ? std::min(*moment, end) : end;
}

Nanoseconds Periods::unix_offset() {
  constexpr Nanoseconds kStep = std::chrono::milliseconds(100);
  const Nanoseconds offset = clock_.unix_time() - clock_.now();
  // Two clocks cannot be read at once. A period begins where the one before it ended, to the nanosecond,
  // unless the clock was set in between.
  if (unix_offset_.count() == 0 || std::chrono::abs(offset - unix_offset_) > kStep) unix_offset_ = offset;
  return unix_offset_;
}

PeriodTimes Periods::close(Nanoseconds end) {
  const PeriodTimes times{
      .sequence = sequence_++, .start = start(), .end = end, .unix_start = start() + unix_offset()};
  cadence_.closed(end);
  closed_++;
  return times;
}

void Periods::hand_over(SessionHandover& handover) const {
  handover.sequence = sequence_;
  handover.started = started_.count();
  handover.period_started = start().count();
  handover.unix_offset = unix_offset_.count();
}

}  // namespace ddprof
