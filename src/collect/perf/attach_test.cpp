#include "collect/perf/attach.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

namespace ddprof {
namespace {

TEST(Attach, NeedsDescriptorsForEachThreadOnEachCpu) {
  EXPECT_EQ(descriptors_needed(3, 2, 1), 3 * 2 * 2 + 10 * 2 + 64U) << "an event, and the totals";
  EXPECT_EQ(descriptors_needed(1, 4, 2), 1 * 4 * 3 + 10 * 4 + 64U);
}

TEST(Attach, CountsTheThreadsOfAllProcesses) {
  std::vector<RunningProcess> processes(2);
  processes[0].threads = 2;
  processes[1].threads = 3;
  EXPECT_EQ(thread_count(processes), 5U);
  EXPECT_EQ(thread_count({}), 0U);
}

TEST(Attach, RaisesTheLimitOfDescriptorsOnlyWhenMoreAreNeeded) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_GT(before.rlim_max, 64U);
  const rlimit low{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_descriptor_limit(64), 64U);
  EXPECT_EQ(raise_descriptor_limit(65), before.rlim_max);
  rlimit raised{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace ddprof
