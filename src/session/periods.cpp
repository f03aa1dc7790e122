#include "session/periods.hpp"

#include <algorithm>

namespace ddprof {

using namespace std::chrono_literals;

Cadence::Cadence(std::optional<std::chrono::seconds> period, std::optional<std::chrono::seconds> window)
    : period_(period) {
  if (period && window && *window < *period) window_ = *window;
}

void Cadence::begin(Nanoseconds start, Nanoseconds now, std::optional<Nanoseconds> paused_since) {
  start_ = start;
  // A pause that began after the start of a profile has ended it, and it is not closed yet.
  const bool is_between = start > now || (paused_since && *paused_since < start);
  is_paused_ = has_pauses() && is_between;
}

std::optional<Nanoseconds> Cadence::next() const {
  if (is_paused_) return start_;
  if (!period_) return std::nullopt;
  return start_ + window_.value_or(*period_);
}

Cadence::Step Cadence::due(Nanoseconds now) const {
  const auto moment = next();
  if (!moment || now < *moment) return Step::none;
  if (is_paused_) return Step::resume;
  return has_pauses() ? Step::pause : Step::close;
}

Nanoseconds Cadence::start_after(Nanoseconds end) const {
  return has_pauses() ? std::max(start_ + *period_, end) : end;
}

void Cadence::closed(Nanoseconds end) {
  start_ = start_after(end);
  is_paused_ = has_pauses();
}

void Cadence::resumed(Nanoseconds now) {
  start_ = now;
  is_paused_ = false;
}

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

namespace {

constexpr std::chrono::milliseconds kEventfulPace = 50ms;
constexpr std::chrono::milliseconds kSamplingPace = 250ms;
constexpr std::chrono::milliseconds kIdlePace = 60s;
constexpr std::chrono::milliseconds kFirstPace = 5ms;
constexpr std::chrono::milliseconds kBeginning = 1s;
constexpr std::uint64_t kFirstSamples = 20;

}  // namespace

void Pace::update() {
  samples_ += new_samples_;
  pace_ = new_others_ > 0 ? kEventfulPace : std::min(pace_ * 2, new_samples_ > 0 ? kSamplingPace : kIdlePace);
  new_samples_ = new_others_ = 0;
}

std::chrono::milliseconds Pace::wait(Nanoseconds now) const {
  // The beginning decides how to go on (fork storms, deep stacks), so it is watched closely.
  bool is_beginning = now - began_ < kBeginning;
  bool is_undecided = is_beginning && (pace_ == kEventfulPace || samples_ < kFirstSamples);
  return is_undecided ? std::min(pace_, kFirstPace) : pace_;
}

}  // namespace ddprof
