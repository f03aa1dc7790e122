#include "collect/perf/thinning.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

constexpr std::uint64_t kBase = 1000;

TEST(Thinning, KeepsEverythingAtFactorOne) {
  Thinning thinning;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(thinning.weigh(kBase, kBase), 1);
}

TEST(Thinning, KeepsTheSumOfWhatItLeavesOut) {
  Thinning thinning;
  thinning.set_factor(8);
  int kept = 0;
  double sum = 0;
  constexpr int kSamples = 80'000;
  for (int i = 0; i < kSamples; ++i) {
    double weight = thinning.weigh(kBase, kBase);
    kept += weight > 0 ? 1 : 0;
    sum += weight;
  }
  EXPECT_NEAR(kept, kSamples / 8, 400);  // four standard deviations
  EXPECT_NEAR(sum, kSamples, 3200);
}

TEST(Thinning, LeavesAloneWhatTheKernelHasSlowedDown) {
  Thinning thinning;
  thinning.set_factor(4);
  EXPECT_EQ(thinning.weigh(4 * kBase, kBase), 1);
}

}  // namespace
}  // namespace ddprof
