#include "profile/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"
#include "profile/profile_view.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Part {
  std::vector<std::int64_t> values;
  std::optional<std::int64_t> time;
};

std::vector<Part> parts_of(const ProfileSample& sample) {
  SampleParts parts;
  std::vector<Part> made;
  for (parts.begin(sample); parts.next();) made.push_back({parts.values(), parts.time()});
  return made;
}

TEST(SampleParts, GivesEveryEventItsTimeAndItsShare) {
  const auto parts = parts_of({.values = {2, 21}, .times = {100, 200}, .events = 2});
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].time, 100);
  EXPECT_EQ(parts[1].time, 200);
  EXPECT_THAT(parts[0].values, ElementsAre(1, 10));
  EXPECT_THAT(parts[1].values, ElementsAre(1, 11));
}

TEST(SampleParts, KeepsEventsWithoutATimeTogether) {
  const auto parts = parts_of({.values = {3, 30}, .times = {100}, .events = 3});
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_THAT(parts[0].values, ElementsAre(1, 10));
  EXPECT_FALSE(parts[1].time.has_value());
  EXPECT_THAT(parts[1].values, ElementsAre(2, 20));
}

TEST(SampleParts, AreTheWholeSampleWithoutTimes) {
  const auto parts = parts_of({.values = {7, 70}});
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_FALSE(parts[0].time.has_value());
  EXPECT_THAT(parts[0].values, ElementsAre(7, 70));
}

TEST(SampleParts, AddUpWhateverTheDivisionLeaves) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t whole : {std::int64_t{1003}, std::int64_t{-1003}, std::int64_t{0}, kMost, -kMost}) {
    const ProfileSample sample{.values = {whole}, .times = {1, 2, 3, 4, 5, 6, 7}, .events = 9};
    const auto parts = parts_of(sample);
    EXPECT_THAT(parts, SizeIs(8));
    EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                              [](std::int64_t sum, const Part& part) { return sum + part.values[0]; }),
              whole);
  }
}

TEST(EvenShares, DoNotOverflowWithAsManySharesAsThereCanBe) {
  constexpr std::uint32_t kShares = 0xffffffff;
  const EvenShares shares(std::numeric_limits<std::int64_t>::max(), kShares);
  EXPECT_EQ(shares.of_first(kShares), std::numeric_limits<std::int64_t>::max());
  EXPECT_LE(shares.of_first(kShares - 1), std::numeric_limits<std::int64_t>::max());
}

TEST(Timeline, BecomesASamplePerEventWithALabelForItsTime) {
  ProfileBuilder builder;
  Profile& profile = builder.profile();
  profile.value_types = {builder.value_type("samples", "count")};
  profile.time_label = builder.number_label(kEndTimestampLabel, 0, "nanoseconds");
  const std::uint32_t location = builder.add_named_location("main");
  builder.add_sample({.locations = {location},
                      .values = {3},
                      .labels = {builder.text_label(kThreadNameLabel, "worker")},
                      .times = {1000, 2000},
                      .events = 3});
  EXPECT_TRUE(has_timeline(profile));
  const Profile expanded = with_a_sample_per_event(std::move(builder).build());
  EXPECT_FALSE(has_timeline(expanded));
  ASSERT_THAT(expanded.samples, SizeIs(3));
  EXPECT_EQ(label_text(expanded, expanded.samples[0], kEndTimestampLabel), "1000");
  EXPECT_EQ(label_text(expanded, expanded.samples[1], kEndTimestampLabel), "2000");
  EXPECT_EQ(label_text(expanded, expanded.samples[2], kEndTimestampLabel), "");
  for (const ProfileSample& sample : expanded.samples) {
    EXPECT_THAT(sample.times, IsEmpty());
    EXPECT_THAT(sample.values, ElementsAre(1));
    EXPECT_EQ(label_text(expanded, sample, kThreadNameLabel), "worker");
  }
}

}  // namespace
}  // namespace ddprof
