#include "session/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using ::testing::ElementsAre;

constexpr ThreadKey kThread{Pid{1}, Tid{1}};

class TimelineTest : public testing::Test {
 protected:
  void add(std::uint64_t address, std::int64_t value, std::optional<Nanoseconds> time) {
    const Frame frame{.address = address};
    const std::uint32_t sample = aggregator_.add(kThread, {&frame, 1}, {{0, 1}, {1, value}});
    if (time) aggregator_.add_moment(sample, *time);
  }
  AggregatedProfile take() { return aggregator_.take({}, {}); }

  Aggregator aggregator_{{{"samples", "count"}, {"cpu", "nanoseconds"}}};
};

TEST_F(TimelineTest, GivesEveryEventItsTimeAndItsShare) {
  add(1, 10, Nanoseconds(100));
  add(2, 7, Nanoseconds(150));
  add(1, 11, Nanoseconds(200));
  const AggregatedProfile profile = take();
  const auto parts = Timeline(profile, 0).parts(0, 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].time, Nanoseconds(100));
  EXPECT_EQ(parts[1].time, Nanoseconds(200));
  EXPECT_THAT(parts[0].values, ElementsAre(1, 10));
  EXPECT_THAT(parts[1].values, ElementsAre(1, 11));
}

TEST_F(TimelineTest, KeepsEventsWithoutATimeTogether) {
  add(1, 10, Nanoseconds(100));
  add(1, 10, std::nullopt);
  add(1, 10, std::nullopt);
  const AggregatedProfile profile = take();
  const auto parts = Timeline(profile, 0).parts(0, 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_THAT(parts[0].values, ElementsAre(1, 10));
  EXPECT_FALSE(parts[1].time.has_value());
  EXPECT_THAT(parts[1].values, ElementsAre(2, 20));
}

TEST_F(TimelineTest, IsTheWholeSampleWithoutTimes) {
  add(1, 10, std::nullopt);
  const AggregatedProfile profile = take();
  const auto parts = Timeline(profile, 0).parts(0, 2);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_FALSE(parts[0].time.has_value());
  EXPECT_THAT(parts[0].values, ElementsAre(1, 10));
}

TEST_F(TimelineTest, AddsUpWhateverWasScaledAfterwards) {
  for (int i = 0; i < 7; ++i) add(1, 10, Nanoseconds(i));
  AggregatedProfile profile = take();
  profile.values[1] = 1003;
  std::int64_t sum = 0;
  for (const TimelinePart& part : Timeline(profile, 0).parts(0, 2)) sum += part.values[1];
  EXPECT_EQ(sum, 1003);
}

}  // namespace
}  // namespace ddprof
