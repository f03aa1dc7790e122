#include "collect/perf/thinning.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(Thinning, KeepsEverythingAtFactorOne) {
  Thinning thinning;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(thinning.draw_weight(), 1);
}

TEST(Thinning, KeepsTheSumOfWhatItLeavesOut) {
  Thinning thinning;
  thinning.set_factor(8, 0);
  int kept = 0;
  double sum = 0;
  constexpr int kSamples = 80'000;
  for (int i = 0; i < kSamples; ++i) {
    double weight = thinning.draw_weight();
    kept += weight > 0 ? 1 : 0;
    sum += weight;
  }
  EXPECT_NEAR(kept, kSamples / 8, 400);  // four standard deviations
  EXPECT_NEAR(sum, kSamples, 3200);
}

TEST(Thinning, KnowsWhichSamplesWereTakenBeforeAChange) {
  Thinning thinning;
  thinning.set_factor(4, 1000);
  EXPECT_EQ(thinning.weight_at(999), 1);
  EXPECT_EQ(thinning.weight_at(1000), Thinning::slowed(4));
  thinning.set_factor(2, 2000);
  EXPECT_EQ(thinning.weight_at(1500), Thinning::slowed(4));
  EXPECT_EQ(thinning.weight_at(2000), Thinning::slowed(2));
}

}  // namespace
}  // namespace ddprof
