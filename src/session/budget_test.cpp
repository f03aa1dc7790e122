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

TEST(Budgets, GiveUpCachesBeforeTheWorkerIsReplaced) {
  Budgets budgets({.memory = 100});
  const auto check = [&](Nanoseconds now, std::uint64_t memory) {
    return budgets.check(now, 0s, [memory] { return memory; });
  };
  EXPECT_FALSE(check(1s, 50).must_shrink);
  EXPECT_TRUE(check(2s, 120).must_shrink);
  EXPECT_FALSE(check(2'500ms, 120).is_exceeded);  // once a second
  const Budgets::Steps steps = check(3s, 120);
  EXPECT_FALSE(steps.must_shrink);
  EXPECT_TRUE(steps.is_exceeded);
  EXPECT_FALSE(check(4s, 80).is_exceeded);  // it has helped
  EXPECT_FALSE(check(31s, 80).must_shrink);
  EXPECT_TRUE(check(32s, 80).must_shrink);  // half a minute later they may be large again
}

TEST(Budgets, SayThatTheyAreReachedAndNotEachTime) {
  Budgets budgets({.cpu = 0.01});
  Nanoseconds now{}, used{};
  std::vector<std::string> said;
  const auto work = [&](double usage, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now += 1s;
      used += std::chrono::duration_cast<Nanoseconds>(1s * usage / budgets.factor());
      const Budgets::Steps steps = budgets.check(now, used, [] { return std::uint64_t{0}; });
      if (!steps.notice.empty()) said.push_back(steps.notice);
    }
  };
  work(0.06, 60);
  work(0, 120);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[1], "within --max-cpu again: every sample is taken");
  work(0.06, 60);  // within ten minutes
  work(0, 120);
  EXPECT_EQ(said.size(), 2U);
  now += 10min;
  work(0, 1);
  work(0.06, 60);
  EXPECT_EQ(said.size(), 3U);
}

TEST(Memory, IsTightBeforeItIsExceeded) {
  EXPECT_EQ(judge_memory(10, 0), MemoryState::fine);
  EXPECT_EQ(judge_memory(74, 100), MemoryState::fine);
  EXPECT_EQ(judge_memory(75, 100), MemoryState::tight);
  EXPECT_EQ(judge_memory(99, 100), MemoryState::tight);
  EXPECT_EQ(judge_memory(100, 100), MemoryState::exceeded);
}

TEST(Memory, IsWhatThisProcessHasWrittenTo) {
  const std::uint64_t before = own_memory_bytes();
  std::vector<char> grown(64 << 20, 'x');
  EXPECT_GT(own_memory_bytes(), before + (60 << 20)) << grown[1];
}

}  // namespace
}  // namespace ddprof
