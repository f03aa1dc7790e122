#include "session/pace.hpp"

#include <algorithm>

namespace ddprof {

using namespace std::chrono_literals;

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
