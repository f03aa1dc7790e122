#include "session/budget.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

// A profiler whose work is in proportion to its samples.
std::uint32_t factor_after(CpuBudget& budget, Nanoseconds& now, Nanoseconds& used, double usage,
                           int seconds) {
  for (int i = 0; i < seconds; ++i) {
    now += 1s;
    used += std::chrono::duration_cast<Nanoseconds>(1s * usage / budget.factor());
    budget.update(now, used);
  }
  return budget.factor();
}

TEST(CpuBudget, SlowsDownUntilTheWorkFitsAndNoFurther) {
  CpuBudget budget(0.01);
  Nanoseconds now{1s};
  Nanoseconds used{};
  EXPECT_EQ(factor_after(budget, now, used, 0.06, 120), 8U);
}

TEST(CpuBudget, RestoresTheRateWhenTheLoadIsGone) {
  CpuBudget budget(0.01);
  Nanoseconds now{1s};
  Nanoseconds used{};
  EXPECT_GT(factor_after(budget, now, used, 0.06, 60), 1U);
  EXPECT_EQ(factor_after(budget, now, used, 0.003, 120), 1U);
}

TEST(CpuBudget, IsNotAlarmedByOneExport) {
  CpuBudget budget(0.05);
  Nanoseconds now{1s};
  Nanoseconds used{};
  factor_after(budget, now, used, 0.01, 30);
  EXPECT_EQ(factor_after(budget, now, used, 0.3, 1), 1U);
}

TEST(CpuBudget, WithoutABudgetChangesNothing) {
  CpuBudget budget(0);
  Nanoseconds now{1s};
  Nanoseconds used{};
  EXPECT_EQ(factor_after(budget, now, used, 1.0, 60), 1U);
}

TEST(Memory, IsTightBeforeItIsExceeded) {
  EXPECT_EQ(judge_memory(10, 0), MemoryState::fine);
  EXPECT_EQ(judge_memory(70, 100), MemoryState::fine);
  EXPECT_EQ(judge_memory(80, 100), MemoryState::tight);
  EXPECT_EQ(judge_memory(100, 100), MemoryState::exceeded);
}

TEST(Memory, IsWhatThisProcessHasWrittenTo) {
  const std::uint64_t before = own_memory_bytes();
  std::vector<char> grown(64 << 20, 'x');
  EXPECT_GT(own_memory_bytes(), before + (60 << 20)) << grown[1];
}

}  // namespace
}  // namespace ddprof
