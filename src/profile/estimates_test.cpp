#include "profile/cpu_ledger.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

AggregatedProfile three_samples() {
  Aggregator aggregator({{"cpu", "nanoseconds"}, {"estimate", "nanoseconds"}});
  const std::int64_t values[] = {10, 20, 70};
  for (std::uint64_t i = 0; i < 3; ++i) {
    Frame frame{.address = i};
    aggregator.add({Pid{1}, Tid{1}}, {&frame, 1}, {{1, values[i]}});
  }
  return aggregator.take({}, {});
}

TEST(Estimates, KeepSharesAndSumUpToTheTotal) {
  AggregatedProfile profile = three_samples();
  fold_estimates(profile, 1, 0, 1003);
  EXPECT_EQ(column_sum(profile, 0), 1003);
  EXPECT_EQ(column_sum(profile, 1), 0);
  EXPECT_NEAR(static_cast<double>(profile.sample_values(2)[0]), 702.1, 1.0);
}

TEST(Estimates, AreAddedToWhatIsExact) {
  AggregatedProfile profile = three_samples();
  profile.values[0] = 5;
  fold_estimates(profile, 1, 0, 100);
  EXPECT_EQ(profile.sample_values(0)[0], 15);
  EXPECT_EQ(column_sum(profile, 0), 105);
}

TEST(Estimates, AColumnIsScaledToATotal) {
  AggregatedProfile profile = three_samples();
  scale_column(profile, 1, 97);
  EXPECT_EQ(column_sum(profile, 1), 97);
  EXPECT_NEAR(static_cast<double>(profile.sample_values(2)[1]), 67.9, 1.0);
}

TEST(Estimates, OfNothingAreNothing) {
  AggregatedProfile profile = three_samples();
  fold_estimates(profile, 1, 0, 0);
  EXPECT_EQ(column_sum(profile, 0), 0);
  EXPECT_EQ(column_sum(profile, 1), 0);
}

TEST(Estimates, WithoutAnyNothingChanges) {
  Aggregator aggregator({{"cpu", "nanoseconds"}, {"estimate", "nanoseconds"}});
  Frame frame{.address = 1};
  aggregator.add({Pid{1}, Tid{1}}, {&frame, 1}, {{0, 42}});
  AggregatedProfile profile = aggregator.take({}, {});
  fold_estimates(profile, 1, 0, 1000);
  EXPECT_EQ(column_sum(profile, 0), 42);
}

}  // namespace
}  // namespace ddprof
