#include "collect/perf/fork_storm.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

// Ends `count` tasks at an even pace; every `sampled_every`th was sampled (0: none).
std::uint64_t end_tasks(ForkStorm& storm, std::uint64_t start, int count, std::uint64_t gap,
                        int sampled_every) {
  std::uint64_t time = start;
  for (int i = 0; i < count; ++i, time += gap)
    storm.task_ended(time, sampled_every != 0 && i % sampled_every == 0);
  return time;
}

TEST(ForkStorm, RagesWhenManyTasksEndUnseen) {
  ForkStorm storm;
  std::uint64_t now = end_tasks(storm, 1, 600, kMillisecond, 0);
  EXPECT_TRUE(storm.is_raging(now));
  EXPECT_EQ(storm.unsampled_ends(), 600U);
}

TEST(ForkStorm, IgnoresTasksThatEndSlowly) {
  ForkStorm storm;
  std::uint64_t now = end_tasks(storm, 1, 200, 100 * kMillisecond, 0);
  EXPECT_FALSE(storm.is_raging(now + 500 * kMillisecond));
}

TEST(ForkStorm, IgnoresTasksThatWereSampled) {
  ForkStorm storm;
  std::uint64_t now = end_tasks(storm, 1, 1000, kMillisecond, 2);
  EXPECT_FALSE(storm.is_raging(now));
}

TEST(ForkStorm, IgnoresAShortBurst) {
  ForkStorm storm;
  std::uint64_t now = end_tasks(storm, 1, 40, kMillisecond, 0);
  EXPECT_FALSE(storm.is_raging(now + 500 * kMillisecond));
}

TEST(ForkStorm, DecidesWhenTheWindowIsOver) {
  ForkStorm storm;
  std::uint64_t now = end_tasks(storm, 1, 100, kMillisecond, 0);
  EXPECT_FALSE(storm.is_raging(now));
  EXPECT_TRUE(storm.is_raging(now + 500 * kMillisecond));
}

}  // namespace
}  // namespace ddprof
