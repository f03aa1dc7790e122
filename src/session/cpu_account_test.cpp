#include "session/cpu_account.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ddprof {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

const Pid kTask{1 << 23};  // above any pid_max
const Tid kTaskThread{1 << 23};

class CountingCollector final : public Collector {
 public:
  Result<void> collect(std::chrono::milliseconds, const EventHandler&) override { return {}; }
  Result<void> drain(const EventHandler&) override { return {}; }
  std::optional<std::int64_t> exact_total(std::uint32_t) override { return counted; }
  bool is_finished() override { return true; }
  [[nodiscard]] CollectorCounters counters() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "counting"; }
  [[nodiscard]] std::vector<std::string> notices() const override { return {}; }

  std::optional<std::int64_t> counted;
};

class CpuAccountTest : public testing::Test {
 protected:
  CpuAccount account() { return {clocked_, options_, collector_, processes_}; }
  void add(CpuAccount& account, std::int64_t value) {
    SampleEvent sample;
    sample.pid = kTask;
    sample.tid = kTaskThread;
    sample.value = value;
    account.add(sample);
    const Frame frame{.address = 1};
    aggregator_.add({kTask, kTaskThread}, {&frame, 1}, {{0, value}});
  }
  AggregatedProfile close(CpuAccount& account) { return account.close(aggregator_, 0s, 1s, true); }

  CpuAccount::Clocked clocked_{.event = 0, .column = 0, .estimate_column = 1, .period = 10'000'000};
  CpuAccountOptions options_{.root = kTask};
  CountingCollector collector_;
  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  ProcessTable processes_{files_};
  Aggregator aggregator_{{{"cpu", "nanoseconds"}, {"estimate", "nanoseconds"}}};
};

// Eleven days of CPU time: what is stolen from this machine meanwhile does not matter.
TEST_F(CpuAccountTest, WhatWasChargedIsTheTruthUnlessItLacksChildren) {
  constexpr std::int64_t kCounted = 1'000'000'000'000'000;
  const auto total = [&](std::int64_t deficit, Pid parent) {
    collector_.counted = kCounted;
    options_.charged.ask = [&](std::int64_t counted, bool) { return counted - deficit; };
    CpuAccount one = account();
    one.start({}, 0s);
    one.add(ForkEvent{kTask, parent, Tid{7}, kTaskThread, {}});
    close(one);
    return *one.totals().exact;
  };
  const Pid itself = kTask, other{(1 << 23) + 1};
  EXPECT_EQ(total(kCounted / 4 - 1, itself), kCounted - kCounted / 4 + 1) << "threads are no children";
  EXPECT_EQ(total(kCounted / 4, itself), kCounted) << "no charge is that far off";
  EXPECT_EQ(total(kCounted / 200, other), kCounted - kCounted / 200);
  EXPECT_EQ(total(kCounted / 200 + 1, other), kCounted) << "of children that were not waited for";
  EXPECT_EQ(total(-5, other), kCounted + 5);
}

TEST_F(CpuAccountTest, TheChargeIsAskedForEverMoreRarely) {
  std::vector<Nanoseconds> asked;
  Nanoseconds now{};
  collector_.counted = 1;
  options_.charged.ask = [&](std::int64_t counted, bool is_final) {
    EXPECT_FALSE(is_final);
    asked.push_back(now);
    return counted;
  };
  CpuAccount one = account();
  one.start({}, 0s);
  for (const Nanoseconds time :
       {0ns, 999'999'999ns, Nanoseconds(1s), Nanoseconds(80s), 89'999'999'999ns, Nanoseconds(90s)}) {
    now = time;
    one.refresh_charge(now);
  }
  EXPECT_THAT(asked, ElementsAre(0s, 1s, 80s, 90s));
  options_.charged.is_exact = true;
  account().refresh_charge(100s);
  EXPECT_EQ(asked.size(), 4U) << "it will be known to the microsecond";
}

TEST_F(CpuAccountTest, AnotherWorkerAsksForTheChargeAsOftenAsTheFirst) {
  int asked = 0;
  collector_.counted = 1;
  options_.charged.ask = [&](std::int64_t counted, bool) {
    ++asked;
    return counted;
  };
  CpuAccount one = account();
  one.resume({}, 1000s);
  for (const Nanoseconds now : {1000s, 1001s, 1002s}) one.refresh_charge(now);
  EXPECT_EQ(asked, 3);
}

TEST_F(CpuAccountTest, SamplesThatStandForMoreThanWasChargedAreScaledDown) {
  for (const auto& [sampled, told] : {std::pair(200'000, 200'000), {201'000, 201'000}, {201'001, 200'000}}) {
    collector_.counted = 200'000;
    CpuAccount one = account();
    one.start({}, 0s);
    add(one, sampled);
    EXPECT_EQ(column_sum(close(one), 0), told) << "half a percent is noise";
    EXPECT_EQ(one.totals().sampled, sampled);
  }
}

TEST_F(CpuAccountTest, TimeInWhichTheKernelStoppedSamplingIsTold) {
  collector_.counted = 100'000'000;
  CpuAccount one = account();
  one.start({}, 0s);
  add(one, 10'000'000);
  one.add(ThrottleEvent{.time = 1s, .is_start = true});
  one.add(ThrottleEvent{.time = 1s + 30ms, .is_start = false});
  EXPECT_EQ(column_sum(close(one), 0), 100'000'000);
  EXPECT_EQ(one.totals().losses.at(Loss::throttled), 30'000'000);
}

TEST_F(CpuAccountTest, OtherEventsAreNoCpuTime) {
  CpuAccount one = account();
  SampleEvent sample;
  sample.event = 1;
  sample.value = 77;
  one.add(sample);
  EXPECT_EQ(one.totals().sampled, 0);
}

// Three ticks of two short tasks, one of which became a sample that stands for a whole period.
TEST_F(CpuAccountTest, SamplesOfTicksSumUpToTheTicks) {
  collector_.counted = 3'500'000;
  CpuAccount one = account();
  one.start({}, 0s);
  for (const int tid : {7, 7, 8}) one.add(TickEvent{kTask, Tid{tid}, 0, 1'000'000});
  SampleEvent sample;
  sample.pid = kTask;
  sample.tid = Tid{7};
  sample.value = 10'000'000;
  sample.basis = SampleBasis::ticks;
  one.add(sample);
  const Frame frame{.address = 1};
  aggregator_.add({kTask, Tid{7}}, {&frame, 1}, {{1, sample.value}});
  one.add(TaskTotalEvent{kTask, Tid{7}, 0, 2'500'000});
  one.add(TaskTotalEvent{kTask, Tid{8}, 0, 1'000'000});
  EXPECT_EQ(column_sum(close(one), 0), 3'500'000);
  EXPECT_EQ(one.totals().sampled, 3'000'000);
  EXPECT_THAT(one.totals().losses, ElementsAre(std::pair(Loss::unsampled, 500'000)));
}

TEST_F(CpuAccountTest, TicksWithoutASampleWaitForOne) {
  collector_.counted = 1'000'000;
  CpuAccount one = account();
  one.start({}, 0s);
  one.add(TickEvent{kTask, kTaskThread, 0, 1'000'000});
  EXPECT_EQ(column_sum(one.close(aggregator_, 0s, 1s, false), 0), 0);
  SessionHandover handover;
  one.hand_over(handover);
  EXPECT_EQ(handover.told_by_samples, 0) << "the next worker tells them";
  EXPECT_EQ(column_sum(close(one), 0), 1'000'000) << "or the last profile, as time without samples";
  EXPECT_THAT(one.totals().losses, ElementsAre(std::pair(Loss::unsampled, 1'000'000)));
  EXPECT_EQ(one.totals().sampled, 0);
}

TEST_F(CpuAccountTest, TheNextWorkerGoesOnWithWhatWasTold) {
  collector_.counted = 100'000'000;
  CpuAccount first = account();
  first.start({}, 0s);
  add(first, 60'000'000);
  close(first);
  SessionHandover handover;
  first.hand_over(handover);
  EXPECT_EQ(handover.sampled, 60'000'000);
  CpuAccount second = account();
  second.resume(handover, 0s);
  EXPECT_EQ(second.totals().sampled, 60'000'000);
  EXPECT_EQ(second.totals().losses, first.totals().losses);
  EXPECT_EQ(column_sum(close(second), 0), 0) << "everything has been told";
}

}  // namespace
}  // namespace ddprof
