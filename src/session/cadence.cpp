#include "session/cadence.hpp"

#include <algorithm>

namespace ddprof {

Cadence::Cadence(std::optional<std::chrono::seconds> period, std::optional<std::chrono::seconds> window)
    : period_(period) {
  if (period && window && *window < *period) window_ = *window;
}

void Cadence::begin(Nanoseconds start, Nanoseconds now, std::optional<Nanoseconds> paused_since) {
  start_ = start;
  // A pause that began after the start of a profile has ended it, and nobody has closed it yet.
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

}  // namespace ddprof
