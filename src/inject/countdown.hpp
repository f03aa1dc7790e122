#pragma once

#include <stdint.h>

#include "inject/thread_state.hpp"

namespace inject {

// When to sample: after an exponentially distributed number of bytes, so that every byte has the same chance
// of 1 / interval (a Poisson process). docs/memory.md has the mathematics.
//
// A countdown is capped, so that a thread notices when sampling begins, ends or changes its interval. At the
// cap nothing is decided yet: the rest of the allocation that reached it is drawn for with the old interval,
// and what follows with the new one. The process is memoryless, so that is exact.
class Countdown {
 public:
  // Bytes that a thread allocates at most before it asks again.
  static constexpr uint64_t kCapIntervals = 8;
  static constexpr uint64_t kLongestCap = uint64_t{64} << 20U;
  static constexpr uint64_t kDormant = uint64_t{16} << 20U;

  explicit Countdown(ThreadState& state) : state_(state) {}

  // To be called when the countdown is due. Returns the interval of the sample; 0: none is due.
  // `interval` is the one to go on with; 0: not sampling.
  uint64_t expire(uint64_t interval) {
    if (state_.interval == 0) {  // the first of this thread, or sampling was off
      const uint64_t done = -state_.countdown;
      draw(interval);
      if (interval == 0) return 0;
      state_.countdown -= done;
      if (!state_.is_due()) return 0;
    }
    const uint64_t drawn_with = state_.interval;
    const uint64_t beyond = -state_.countdown;
    const bool is_due = !state_.is_capped || exponential(drawn_with) < beyond;
    draw(interval);
    return is_due ? drawn_with : 0;
  }

  // What was due could not be taken. The next sample is drawn for anew: else whatever comes next would be
  // taken in its place, however small.
  void pass_over() {
    state_.interval = 0;
    state_.countdown = 0;
  }

 private:
  void draw(uint64_t interval) {
    state_.interval = interval;
    state_.is_capped = false;
    state_.countdown = kDormant;
    if (interval == 0) return;
    uint64_t cap = interval * kCapIntervals;
    if (cap > kLongestCap) cap = kLongestCap;
    const uint64_t bytes = exponential(interval);
    state_.is_capped = bytes > cap;
    state_.countdown = state_.is_capped ? cap : bytes;
  }

  uint64_t exponential(uint64_t mean) {
    const double value = -logarithm(uniform()) * static_cast<double>(mean);
    constexpr double kMost = 1e15;
    return static_cast<uint64_t>(value < kMost ? value : kMost);
  }

  // In (0, 1]. splitmix64: good from any seed, also from consecutive ones.
  double uniform() {
    state_.random += 0x9e3779b97f4a7c15U;
    uint64_t bits = state_.random;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    bits ^= bits >> 31U;
    return static_cast<double>((bits >> 11U) + 1) * 0x1p-53;
  }

  // There is no libm here. Of x = m 2^e with m between 1/sqrt(2) and sqrt(2): the series of the area tangent,
  // which is exact to 1e-9.
  static double logarithm(double x) {
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &x, sizeof bits);
    constexpr uint64_t kHalfRoot = 0x3fe6a09e667f3bcdU;  // 1/sqrt(2)
    const auto exponent = static_cast<int64_t>(bits - kHalfRoot) >> 52;
    bits -= static_cast<uint64_t>(exponent) << 52U;
    double m = 0;
    __builtin_memcpy(&m, &bits, sizeof m);
    const double z = (m - 1) / (m + 1);
    const double w = z * z;
    const double series =
        1 + w * (1.0 / 3 + w * (1.0 / 5 + w * (1.0 / 7 + w * (1.0 / 9 + w * (1.0 / 11 + w / 13)))));
    return 2 * z * series + static_cast<double>(exponent) * 0.693147180559945309;
  }

  ThreadState& state_;
};

}  // namespace inject
