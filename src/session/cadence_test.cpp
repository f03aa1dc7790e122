#include "session/periods.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

using namespace std::chrono_literals;
using Step = Cadence::Step;

TEST(Cadence, WithoutAPeriodNothingIsEverDue) {
  Cadence cadence(std::nullopt, std::nullopt);
  cadence.begin(100s);
  EXPECT_EQ(cadence.due(1'000'000s), Step::none);
  EXPECT_FALSE(cadence.next());
}

TEST(Cadence, PeriodsFollowEachOther) {
  Cadence cadence(59s, std::nullopt);
  cadence.begin(100s);
  EXPECT_EQ(cadence.next(), 159s);
  EXPECT_EQ(cadence.due(159s - 1ns), Step::none);
  EXPECT_EQ(cadence.due(159s), Step::close);
  EXPECT_EQ(cadence.start_after(160s), 160s);
  cadence.closed(160s);
  EXPECT_EQ(cadence.start(), 160s);
  EXPECT_FALSE(cadence.is_paused());
  EXPECT_EQ(cadence.next(), 219s);
}

TEST(Cadence, LooksAtTheFirstPartOfEveryPeriod) {
  Cadence cadence(60s, 15s);
  cadence.begin(100s);
  EXPECT_EQ(cadence.due(115s - 1ns), Step::none);
  EXPECT_EQ(cadence.due(115s), Step::pause);
  cadence.closed(115s + 1ms);
  EXPECT_TRUE(cadence.is_paused());
  EXPECT_EQ(cadence.start(), 160s);
  EXPECT_EQ(cadence.due(160s - 1ns), Step::none);
  EXPECT_EQ(cadence.due(160s), Step::resume);
  cadence.resumed(160s + 1ms);
  EXPECT_FALSE(cadence.is_paused());
  EXPECT_EQ(cadence.start(), 160s + 1ms);
  EXPECT_EQ(cadence.next(), 175s + 1ms);
}

TEST(Cadence, AWindowThatFillsItsPeriodMakesNoPauses) {
  Cadence cadence(60s, 60s);
  cadence.begin(0s);
  EXPECT_FALSE(cadence.has_pauses());
  EXPECT_EQ(cadence.due(60s), Step::close);
}

TEST(Cadence, AProfileThatTookLongerThanThePeriodIsFollowedAtOnce) {
  Cadence cadence(60s, 15s);
  cadence.begin(100s);
  cadence.closed(200s);
  EXPECT_EQ(cadence.due(200s), Step::resume);
}

TEST(Cadence, AnotherWorkerGoesOnWithinTheWindow) {
  Cadence cadence(60s, 15s);
  cadence.begin(100s, 110s, std::nullopt);
  EXPECT_FALSE(cadence.is_paused());
  EXPECT_EQ(cadence.next(), 115s);
}

TEST(Cadence, AnotherWorkerGoesOnWithThePause) {
  Cadence cadence(60s, 15s);
  cadence.begin(160s, 130s, 115s);
  EXPECT_TRUE(cadence.is_paused());
  EXPECT_EQ(cadence.next(), 160s);
}

TEST(Cadence, AnotherWorkerThatComesLateResumesAtOnce) {
  Cadence cadence(60s, 15s);
  cadence.begin(160s, 170s, 115s);
  EXPECT_EQ(cadence.due(170s), Step::resume);
}

// The profile of 100 to 115 was complete, and its worker ended before it was sent.
TEST(Cadence, AnotherWorkerClosesAProfileThatNobodyClosed) {
  Cadence cadence(60s, 15s);
  cadence.begin(100s, 120s, 115s);
  EXPECT_EQ(cadence.due(120s), Step::pause);
  cadence.closed(115s);
  EXPECT_EQ(cadence.start(), 160s);
}

}  // namespace
}  // namespace ddprof
