#include "profile/cpu_ledger.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace ddprof {
namespace {

constexpr std::int64_t kPeriod = 10'000'000;
constexpr std::int64_t kPlenty = 1'000 * kPeriod;  // an exact total that limits nothing
const ThreadKey kFirst{Pid{10}, Tid{10}};
const ThreadKey kSecond{Pid{10}, Tid{11}};

std::int64_t sum(const std::vector<CpuLedger::Entry>& entries) {
  return std::accumulate(entries.begin(), entries.end(), std::int64_t{0},
                         [](std::int64_t total, const auto& entry) { return total + entry.value; });
}

TEST(CpuLedger, ReportsAShortTaskThatNoSampleSaw) {
  CpuLedger ledger(kPeriod, true);
  ledger.add_task_total(kSecond, 600'000);
  ledger.add_task_total(kSecond, 400'000);  // the second CPU
  auto entries = ledger.close_ended(kPlenty);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].thread, kSecond);
  EXPECT_EQ(entries[0].loss, Loss::unsampled);
  EXPECT_EQ(entries[0].value, 1'000'000);
}

TEST(CpuLedger, SamplesAndEntriesSumUpToTheExactTotal) {
  CpuLedger ledger(kPeriod, true);
  for (int i = 0; i < 7; ++i) ledger.add_sample(kSecond, kPeriod);
  for (int i = 0; i < 3; ++i) ledger.add_sample(kFirst, kPeriod);
  ledger.add_task_total(kSecond, 7 * kPeriod + 4'000'000);
  const std::int64_t exact = 7 * kPeriod + 4'000'000 + 3 * kPeriod + 9'000'000;
  std::int64_t missing = sum(ledger.close_ended(kPlenty));
  EXPECT_EQ(missing, 4'000'000);
  auto rest = ledger.close_living(exact, {}, kFirst, true);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].thread, kFirst);
  EXPECT_EQ(10 * kPeriod + missing + sum(rest), exact);
}

TEST(CpuLedger, WhatWaitsForItsSampleIsNotReportedBeforeTheEnd) {
  CpuLedger ledger(kPeriod, true);
  ledger.add_sample(kFirst, kPeriod);
  EXPECT_TRUE(ledger.close_ended(kPlenty).empty());
  EXPECT_TRUE(ledger.close_living(kPeriod + 9'000'000, {}, kFirst, false).empty());
  ledger.add_sample(kFirst, kPeriod);
  auto last = ledger.close_living(2 * kPeriod + 1, {}, kFirst, true);
  EXPECT_EQ(sum(last), 1);
}

TEST(CpuLedger, NamesTheTimeOfAThreadThatTheKernelDoesNotSampleAnyMore) {
  for (const bool samples_kernel : {true, false}) {
    CpuLedger ledger(kPeriod, samples_kernel);
    ledger.add_detached(kSecond);
    ledger.add_task_total(kSecond, 1);  // until it was detached: it lives on
    EXPECT_TRUE(ledger.close_ended(kPlenty).empty());
    const std::array<CpuLedger::ThreadTotal, 2> living{{{kSecond, 5 * kPeriod}, {kFirst, kPeriod + 1}}};
    auto entries = ledger.close_living(7 * kPeriod, living, kFirst, false);
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].thread, kSecond);
    EXPECT_EQ(entries[0].loss, Loss::other_user);
    EXPECT_EQ(entries[0].value, 4 * kPeriod);
    EXPECT_EQ(entries[1].loss, Loss::unsampled);
    // It has ended, and somebody has waited for it: that is all that is known.
    auto rest = ledger.close_living(20 * kPeriod, {}, kFirst, true);
    ASSERT_EQ(rest.size(), 1U);
    EXPECT_EQ(rest[0].thread, kSecond);
    EXPECT_EQ(rest[0].loss, Loss::other_user);
  }
}

TEST(CpuLedger, NamesTimeInTheKernelThatMayNotBeSampled) {
  CpuLedger ledger(kPeriod, false);
  ledger.add_sample(kSecond, kPeriod);
  ledger.add_task_total(kSecond, 5 * kPeriod);
  auto entries = ledger.close_ended(kPlenty);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].loss, Loss::kernel);
  EXPECT_EQ(entries[0].value, 4 * kPeriod);
}

TEST(CpuLedger, LostRecordsExplainWhatExceedsTheTail) {
  CpuLedger ledger(kPeriod, true);
  ledger.add_lost(2);
  ledger.add_task_total(kSecond, 3 * kPeriod);
  auto entries = ledger.close_ended(kPlenty);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].loss, Loss::lost);
  EXPECT_EQ(entries[0].value, 2 * kPeriod);
  EXPECT_EQ(entries[1].loss, Loss::unsampled);
  EXPECT_EQ(sum(entries), 3 * kPeriod);
}

TEST(CpuLedger, LivingThreadsAreChargedOnlyOnce) {
  CpuLedger ledger(kPeriod, false);
  const CpuLedger::ThreadTotal first[] = {{kSecond, 4 * kPeriod}};
  auto entries = ledger.close_living(4 * kPeriod, first, kFirst, false);
  EXPECT_EQ(sum(entries), 3 * kPeriod);
  const CpuLedger::ThreadTotal second[] = {{kSecond, 5 * kPeriod}};
  EXPECT_EQ(sum(ledger.close_living(5 * kPeriod, second, kFirst, false)), kPeriod);
  EXPECT_EQ(sum(ledger.close_living(5 * kPeriod, second, kFirst, true)), kPeriod);
}

TEST(CpuLedger, ASampleChargedToTheWrongSiblingIsBalanced) {
  CpuLedger ledger(kPeriod, true);
  for (int i = 0; i < 3; ++i) ledger.add_sample(kFirst, kPeriod);
  ledger.add_task_total(kFirst, 2 * kPeriod + 5'000'000);  // half a period too many samples
  ledger.add_task_total(kSecond, 8'000'000);               // which this one misses
  EXPECT_EQ(sum(ledger.close_ended(3 * kPeriod + 3'000'000)), 3'000'000);
}

TEST(CpuLedger, EntriesNeverExceedTheExactTotal) {
  CpuLedger ledger(kPeriod, true);
  ledger.add_sample(kFirst, kPeriod);
  ledger.add_task_total(kSecond, 8'000'000);
  EXPECT_EQ(sum(ledger.close_ended(kPeriod + 1'000'000)), 1'000'000);
}

TEST(CpuLedger, MoreSamplesThanTimeReportNothingNegative) {
  CpuLedger ledger(kPeriod, true);
  ledger.add_sample(kFirst, kPeriod);
  EXPECT_TRUE(ledger.close_living(kPeriod - 5, {}, kFirst, true).empty());
}

}  // namespace
}  // namespace ddprof
