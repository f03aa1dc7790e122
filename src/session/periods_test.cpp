#include "session/periods.hpp"

#include <gtest/gtest.h>

#include "session/fake_clock_fixture.hpp"

namespace ddprof {
namespace {

using namespace std::chrono_literals;

TEST(Periods, GoOnWithoutAGapFromWorkerToWorker) {
  FakeClock clock;
  Periods first({.length = 60s}, clock);
  first.begin({}, clock.now(), std::nullopt);
  EXPECT_TRUE(first.is_first_worker());
  clock.time += 61s;
  EXPECT_EQ(first.due(clock.now()), Cadence::Step::close);
  const PeriodTimes closed = first.close(clock.now());
  EXPECT_EQ(closed.unix_start, FakeClock::kUnixAtZero + 1s);
  SessionHandover handover;
  first.hand_over(handover);

  clock.time += 5s;
  Periods second({.length = 60s}, clock);
  second.begin(handover, clock.now(), std::nullopt);
  EXPECT_FALSE(second.is_first_worker());
  EXPECT_EQ(second.started(), 1s);
  EXPECT_EQ(second.next(), 62s + 60s);
  const PeriodTimes next = second.close(122s);
  EXPECT_EQ(next.sequence, closed.sequence + 1);
  EXPECT_EQ(next.start, closed.end);
  EXPECT_EQ(next.unix_start, closed.unix_start + 61s);
}

// The clock is read a moment later by the second worker, and not quite at once with the other one.
TEST(Periods, ToldAgainHaveTheSameTime) {
  FakeClock clock;
  Periods first({.length = 60s}, clock);
  first.begin({}, clock.now(), std::nullopt);
  SessionHandover handover;
  first.hand_over(handover);
  struct LaterClock final : Clock {
    [[nodiscard]] Nanoseconds now() const override { return 70s; }
    [[nodiscard]] Nanoseconds unix_time() const override { return FakeClock::kUnixAtZero + 70s + 1ms; }
  } later;
  Periods second({.length = 60s}, later);
  second.begin(handover, later.now(), std::nullopt);
  clock.time = 61s;
  EXPECT_EQ(second.close(70s).unix_start, first.close(61s).unix_start);
}

TEST(Periods, OfARunThatHasAnEnd) {
  FakeClock clock;
  Periods periods({.length = 60s, .duration = 10s}, clock);
  periods.begin({}, clock.now(), std::nullopt);
  EXPECT_EQ(periods.next(), 11s);
  EXPECT_FALSE(periods.is_run_over(10s));
  EXPECT_TRUE(periods.is_run_over(11s));
}

TEST(Periods, AreAsManyAsAWorkerShouldClose) {
  FakeClock clock;
  Periods periods({.length = 1s, .per_worker = 2}, clock);
  periods.begin({}, clock.now(), std::nullopt);
  periods.close(2s);
  EXPECT_FALSE(periods.is_worker_over());
  periods.close(3s);
  EXPECT_TRUE(periods.is_worker_over());
}

TEST(Periods, FollowAClockThatWasSetAndNoSmallerStep) {
  struct SteppedClock final : Clock {
    [[nodiscard]] Nanoseconds now() const override { return time; }
    [[nodiscard]] Nanoseconds unix_time() const override { return FakeClock::kUnixAtZero + time + step; }
    Nanoseconds time = 1s, step{};
  } clock;
  Periods periods({.length = 60s}, clock);
  periods.begin({}, clock.now(), std::nullopt);
  clock.step = 100ms;
  EXPECT_EQ(periods.close(61s).unix_start, FakeClock::kUnixAtZero + 1s);
  clock.step = 101ms;
  EXPECT_EQ(periods.close(121s).unix_start, FakeClock::kUnixAtZero + 61s + 101ms);
}

class PaceTest : public testing::Test {
 protected:
  PaceTest() { pace_.begin(kBegan); }
  void update(int samples, int others = 0) {
    for (int i = 0; i < samples; ++i) pace_.count(true);
    for (int i = 0; i < others; ++i) pace_.count(false);
    pace_.update();
  }
  static constexpr Nanoseconds kBegan = 10s, kLater = 20s;
  Pace pace_;
};

TEST_F(PaceTest, TheFirstSecondIsWatchedCloselyUntilThereAreTwentySamples) {
  update(19);
  for (int i = 0; i < 3; ++i) update(0);
  EXPECT_EQ(pace_.wait(kBegan), 5ms);
  EXPECT_EQ(pace_.wait(kBegan + 1s - 1ns), 5ms);
  EXPECT_EQ(pace_.wait(kBegan + 1s), 16ms);
  update(1);
  EXPECT_EQ(pace_.wait(kBegan), 32ms) << "twenty tell enough";
}

TEST_F(PaceTest, TasksThatComeAndGoAreFollowedClosely) {
  for (int i = 0; i < 20; ++i) update(100);
  update(100, 1);
  EXPECT_EQ(pace_.wait(kBegan), 5ms);
  EXPECT_EQ(pace_.wait(kLater), 50ms);
  update(100);
  EXPECT_EQ(pace_.wait(kLater), 100ms) << "it was one event";
}

TEST_F(PaceTest, SamplesWaitAQuarterOfASecondAndAnIdleTargetAMinute) {
  for (int i = 0; i < 30; ++i) update(1);
  EXPECT_EQ(pace_.wait(kLater), 250ms);
  for (int i = 0; i < 30; ++i) update(0);
  EXPECT_EQ(pace_.wait(kLater), 60s);
}

}  // namespace
}  // namespace ddprof
