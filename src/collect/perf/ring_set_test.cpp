#include "collect/perf/ring_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

namespace ddprof {

namespace {

using ::testing::ElementsAre;

TEST(CpuList, ReadsNumbersAndRanges) {
  EXPECT_THAT(*parse_cpu_list("0"), ElementsAre(0));
  EXPECT_THAT(*parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*parse_cpu_list("2,5-6"), ElementsAre(2, 5, 6));
}

TEST(CpuList, RefusesWhatIsNotAList) {
  for (const char* text : {"", "x", "1-", "3-1", "1,,2", "0-99999999999", "-1", "1 2"})
    EXPECT_FALSE(parse_cpu_list(text).ok()) << text;
}

TEST(CpuList, FindsTheCpuThatRunsThisTest) {
  auto cpus = online_cpus();
  ASSERT_TRUE(cpus.ok());
  EXPECT_FALSE(cpus->empty());
}

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHalfMebibyte = 512 * 1024 / kPage;

TEST(RingBudget, HasRoomForALateReader) {
  for (std::uint64_t rate : {99U, 499U, 999U}) {
    RingBudgetInput input{.cpus = 2, .samples_per_second = rate, .may_lock_freely = true};
    RingBudget budget = ring_budget(input);
    EXPECT_EQ(budget.wanted_pages, budget.pages);
    EXPECT_GE(budget.pages * kPage, rate * input.record_bytes / (rate > 250 ? 12 : 4));
  }
}

TEST(RingBudget, TakesHalfAMebibyteAtLeast) {
  RingBudget budget = ring_budget({.cpus = 2, .samples_per_second = 1, .may_lock_freely = true});
  EXPECT_EQ(budget.pages, kHalfMebibyte);
}

TEST(RingBudget, FitsTheKernelsDefaultAllowanceForOrdinaryUsers) {
  // 516 KiB per CPU: the ring and its control page.
  RingBudget budget = ring_budget({.cpus = 64, .perf_mlock_kib = 516, .memlock_limit_bytes = 0});
  EXPECT_EQ(budget.pages, kHalfMebibyte);
}

TEST(RingBudget, GrowsWithTheRateUpToALimit) {
  RingBudgetInput input{.cpus = 2, .record_bytes = 34 * 1024, .may_lock_freely = true};
  input.samples_per_second = 20;
  std::size_t slow = ring_budget(input).pages;
  input.samples_per_second = 999;
  EXPECT_GT(ring_budget(input).pages, slow);
  input.samples_per_second = 1'000'000;
  EXPECT_EQ(ring_budget(input).pages, 8U * 1024 * 1024 / kPage);
}

TEST(RingBudget, ManyCpusShareALimit) {
  RingBudget budget = ring_budget({.cpus = 64, .record_bytes = 67'576, .may_lock_freely = true});
  EXPECT_EQ(budget.pages, kHalfMebibyte);
  EXPECT_EQ(ring_budget({.cpus = 2, .record_bytes = 67'576, .may_lock_freely = true}).pages,
            8 * kHalfMebibyte);
}

TEST(RingBudget, CopiesAsMuchStackAsTheRateAndTheRingsAllow) {
  RingBudgetInput input{.cpus = 2, .samples_per_second = 99, .may_lock_freely = true};
  EXPECT_EQ(automatic_stack_bytes(input), 65528U);
  input.samples_per_second = 999;
  EXPECT_EQ(automatic_stack_bytes(input), 16384U);
  input.samples_per_second = 4'999;
  EXPECT_EQ(automatic_stack_bytes(input), 8192U);
  // Half a mebibyte of ring holds seven of the largest records, and fifteen of the next.
  EXPECT_EQ(automatic_stack_bytes({.cpus = 64, .samples_per_second = 99}), 32000U);
}

TEST(RingBudget, ShrinksToWhatMayBeLocked) {
  RingBudgetInput input{
      .cpus = 4, .samples_per_second = 999, .perf_mlock_kib = 516, .memlock_limit_bytes = 0};
  RingBudget budget = ring_budget(input);
  EXPECT_EQ(budget.pages, kHalfMebibyte);
  EXPECT_GT(budget.wanted_pages, budget.pages);
  input.memlock_limit_bytes = 64 * 1024 * 1024;
  EXPECT_EQ(ring_budget(input).pages, ring_budget(input).wanted_pages);
  input.memlock_limit_bytes = ~std::uint64_t{0};  // unlimited
  EXPECT_EQ(ring_budget(input).pages, ring_budget(input).wanted_pages);
}

TEST(RingBudget, LeavesOnePageWhenNothingMayBeLocked) {
  RingBudget budget = ring_budget({.cpus = 128, .perf_mlock_kib = 0, .memlock_limit_bytes = 0});
  EXPECT_EQ(budget.pages, 1U);
}

TEST(RingBudget, IsAlwaysAPowerOfTwoThatFits) {
  for (std::size_t cpus : {1U, 2U, 3U, 7U, 96U}) {
    for (std::uint64_t limit : {0U, 65536U, 1U << 20U, 8U << 20U}) {
      RingBudget budget =
          ring_budget({.cpus = cpus, .samples_per_second = 500, .memlock_limit_bytes = limit});
      EXPECT_TRUE(std::has_single_bit(budget.pages));
      EXPECT_LE((budget.pages + 1) * kPage * cpus, 516 * 1024 * cpus + limit);
    }
  }
}

TEST(RingBudget, WorksWithLargePages) {
  RingBudget budget =
      ring_budget({.cpus = 2, .page_bytes = 65536, .samples_per_second = 1, .may_lock_freely = true});
  EXPECT_EQ(budget.pages * 65536, 512U * 1024);
}

TEST(RingBudget, ReadsThisMachine) {
  RingBudgetInput input = ring_budget_of_this_machine(2);
  EXPECT_EQ(input.cpus, 2U);
  EXPECT_TRUE(std::has_single_bit(input.page_bytes));
}

TEST(RingBudget, LeavesOnePageWhenTheControlPageAloneMayBeLocked) {
  EXPECT_EQ(ring_budget({.cpus = 1, .perf_mlock_kib = 4, .memlock_limit_bytes = 0}).pages, 1U);
  EXPECT_EQ(ring_budget({.cpus = 1, .perf_mlock_kib = 8, .memlock_limit_bytes = 0}).pages, 1U);
  EXPECT_EQ(ring_budget({.cpus = 1, .perf_mlock_kib = 12, .memlock_limit_bytes = 0}).pages, 2U);
}

TEST(RingBudget, ChangesAboveTheHighRateAndTheHighestOne) {
  const auto pages_at = [](std::uint64_t rate) {
    return ring_budget({.cpus = 2, .samples_per_second = rate, .record_bytes = 9000, .may_lock_freely = true})
        .pages;
  };
  EXPECT_EQ(pages_at(250), 2 * kHalfMebibyte * 2) << "1.1 MB for half a second";
  EXPECT_EQ(pages_at(251), kHalfMebibyte) << "0.2 MB for a twelfth of one";
  EXPECT_EQ(pages_at(2'500), 4 * kHalfMebibyte) << "1.9 MB";
  EXPECT_EQ(pages_at(2'501), 16 * kHalfMebibyte) << "11 MB, and no more than eight";
}

TEST(RingBudget, StacksAreShorterAboveEachRate) {
  const auto bytes_at = [](std::uint64_t rate) {
    return automatic_stack_bytes({.cpus = 1, .samples_per_second = rate, .may_lock_freely = true});
  };
  EXPECT_EQ(bytes_at(250), 65528U);
  EXPECT_EQ(bytes_at(251), 16384U);
  EXPECT_EQ(bytes_at(1'000), 16384U);
  EXPECT_EQ(bytes_at(1'001), 8192U);
}

TEST(CpuList, ARangeOfOneIsOne) { EXPECT_THAT(*parse_cpu_list("3-3"), ElementsAre(3)); }

TEST(RingBudget, TheCommandNamesWhatIsNeeded) {
  EXPECT_EQ(lock_more_command(1024 * 1024),
            "sudo sysctl kernel.perf_event_mlock_kb=1536, or ulimit -l unlimited");
}

}  // namespace

}  // namespace ddprof
