#include "inject/countdown.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "inject/hooks.hpp"

namespace inject {
namespace {

constexpr uint64_t kInterval = 512 * 1024;

// What the library does with an allocation, and what the profiler makes of a sample.
class Sampler {
 public:
  explicit Sampler(uint64_t seed) { state_.random = seed; }

  // `is_nested`: by a signal handler that interrupts the slow path of another one.
  void allocate(uint64_t size, uint64_t interval = kInterval, bool is_nested = false) {
    if (!count_down(state_, size)) return;
    if (is_nested) return Countdown(state_).pass_over();
    const uint64_t sampled = Countdown(state_).expire(interval);
    if (sampled == 0) return;
    ++samples;
    bytes +=
        static_cast<double>(size) / -std::expm1(-static_cast<double>(size) / static_cast<double>(sampled));
  }

  uint64_t samples = 0;
  double bytes = 0;  // estimated

 private:
  ThreadState state_{};
};

// The mean over seeds of estimate / truth, in standard errors from 1. Each allocation is sampled with
// p = 1 - e^(-size / interval), independently, so the relative variance of a sum of n is (1 - p) / (p n).
double bias(uint64_t size, uint64_t count) {
  constexpr int kSeeds = 200;
  double sum = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Sampler sampler(static_cast<uint64_t>(seed) * 12345);
    for (uint64_t i = 0; i < count; ++i) sampler.allocate(size);
    sum += sampler.bytes / static_cast<double>(size * count);
  }
  const double chance = -std::expm1(-static_cast<double>(size) / static_cast<double>(kInterval));
  const double error = std::sqrt((1 - chance) / (chance * static_cast<double>(count) * kSeeds));
  return (sum / kSeeds - 1) / (error + 1e-9);
}

TEST(Countdown, EstimatesAllSizesWithoutBias) {
  EXPECT_LT(std::abs(bias(8, 1'000'000)), 4);
  EXPECT_LT(std::abs(bias(1'000, 20'000)), 4);
  EXPECT_LT(std::abs(bias(64 << 10, 1'000)), 4);
  EXPECT_LT(std::abs(bias(512 << 10, 500)), 4);
  EXPECT_LT(std::abs(bias(1 << 20, 500)), 4);
  EXPECT_LT(std::abs(bias(1 << 30, 20)), 4);
}

TEST(Countdown, AThreadThatDoesNothingHasNoSamples) {
  uint64_t samples = 0;
  for (uint64_t seed = 0; seed < 2'000; ++seed) {
    Sampler sampler(seed);
    sampler.allocate(1);
    samples += sampler.samples;
  }
  EXPECT_LT(samples, 2U) << "2,000 bytes in all";
}

// What a signal handler allocates while a sample is taken is not sampled. The others must not stand for it.
TEST(Countdown, WhatCannotBeSampledIsNotPutDownToOthers) {
  constexpr int kSeeds = 200;
  constexpr uint64_t kSmall = 100;
  constexpr uint64_t kCount = 20'000;
  double sum = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Sampler sampler(static_cast<uint64_t>(seed) * 977);
    for (uint64_t i = 0; i < kCount; ++i) {
      sampler.allocate(kSmall);
      if (i % 10 == 0) sampler.allocate(64 << 10, kInterval, true);
    }
    sum += sampler.bytes / static_cast<double>(kSmall * kCount);
  }
  const double chance = -std::expm1(-static_cast<double>(kSmall) / static_cast<double>(kInterval));
  const double error = std::sqrt((1 - chance) / (chance * static_cast<double>(kCount) * kSeeds));
  EXPECT_LT(std::abs(sum / kSeeds - 1), 4 * error) << sum / kSeeds;
}

TEST(Countdown, SizesThatNoAllocatorHasAreDueAndDoNotLengthenIt) {
  for (const uint64_t size :
       {std::numeric_limits<uint64_t>::max(), uint64_t{1} << 63U, (uint64_t{1} << 63U) - 1}) {
    ThreadState state{};
    state.countdown = 1000;
    EXPECT_TRUE(count_down(state, size)) << size;
    state.countdown += size;  // as the slow path does with those that it does not believe
    EXPECT_EQ(state.countdown, 1000U);
  }
}

// The interval changes all the time, as it does when there are too many samples.
TEST(Countdown, StaysUnbiasedWhenTheIntervalChanges) {
  constexpr int kSeeds = 200;
  constexpr uint64_t kSize = 100'000;
  constexpr uint64_t kCount = 2'000;
  double sum = 0;
  double squares = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Sampler sampler(static_cast<uint64_t>(seed));
    for (uint64_t i = 0; i < kCount; ++i) sampler.allocate(kSize, kInterval << (i / 50 % 6));
    const double ratio = sampler.bytes / static_cast<double>(kSize * kCount);
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kSeeds;
  const double error = std::sqrt((squares / kSeeds - mean * mean) / kSeeds);
  EXPECT_LT(std::abs(mean - 1), 4 * error) << mean;
}

TEST(Countdown, NoticesThatSamplingBeginsAndEnds) {
  Sampler sampler(7);
  for (int i = 0; i < 1'000; ++i) sampler.allocate(100'000, 0);
  EXPECT_EQ(sampler.samples, 0U);
  for (int i = 0; i < 1'000; ++i) sampler.allocate(100'000);
  EXPECT_GT(sampler.samples, 100U);
  sampler.samples = 0;
  for (int i = 0; i < 1'000; ++i) sampler.allocate(100'000, 0);
  EXPECT_LE(sampler.samples, 1U) << "the one that was drawn before";
}

}  // namespace
}  // namespace inject
