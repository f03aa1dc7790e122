#include "profile/merge.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

Profile profile_of(std::string_view function, std::int64_t value, std::int64_t time,
                   std::string_view thread = "main") {
  ProfileBuilder builder;
  builder.intern(function);  // so that indices differ between profiles
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  ProfileLine line{builder.add_function("shared"), 7, 0};
  const std::uint32_t root = builder.add_location(kNoMapping, Address{0x10}, {&line, 1});
  const std::uint32_t leaf = builder.add_named_location(function);
  builder.add_sample({{leaf, root}, {1, value}, {builder.text_label("thread name", thread)}});
  builder.profile().time_ns = time;
  builder.profile().duration_ns = 100;
  builder.profile().comments = {builder.intern(function)};
  return std::move(builder).build();
}

TEST(Merge, AddsEqualStacksUp) {
  const Profile merged = merge(profile_of("work", 10, 1000), profile_of("work", 5, 1100));
  ASSERT_EQ(merged.samples.size(), 1U);
  EXPECT_EQ(merged.samples[0].values, (std::vector<std::int64_t>{2, 15}));
  EXPECT_EQ(merged.time_ns, 1000);
  EXPECT_EQ(merged.duration_ns, 200);
}

Profile heap_of(std::int64_t allocated, std::int64_t live, std::string_view age = "less than 10 s") {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("alloc_space", "bytes"),
                                   builder.value_type("inuse_space", "bytes")};
  builder.add_sample({{builder.add_named_location("churn")}, {allocated, 0}, {}});
  builder.add_sample({{builder.add_named_location("leak")}, {0, live}, {builder.text_label("age", age)}});
  return std::move(builder).build();
}

TEST(Merge, WhatIsAliveIsThatOfTheLaterOne) {
  const Profile merged = merge(heap_of(5, 100), heap_of(7, 110, "1 to 10 min"));
  ASSERT_EQ(merged.samples.size(), 2U) << "what was young has become old";
  EXPECT_EQ(merged.samples[0].values, (std::vector<std::int64_t>{12, 0}));
  EXPECT_EQ(merged.samples[1].values, (std::vector<std::int64_t>{0, 110}));
}

TEST(Merge, AnAddressMayHaveTheNamesThatItHadFirst) {
  const auto profile_with = [](std::string_view function) {
    ProfileBuilder builder;
    builder.profile().value_types = {builder.value_type("cpu", "nanoseconds")};
    const std::uint32_t mapping = builder.add_mapping({.start = Address{0x1000}, .limit = Address{0x2000}});
    const ProfileLine line{builder.add_function(function), 7, 0};
    builder.add_sample({{builder.add_location(mapping, Address{0x1010}, {&line, 1})}, {5}, {}});
    return std::move(builder).build();
  };
  for (const bool by_address : {false, true}) {
    ProfileMerger merger(profile_with("work"));
    merger.add(profile_with("work"));
    merger.add(profile_with("program+0x10"), {.by_address = by_address});
    EXPECT_EQ(std::move(merger).take().samples.size(), by_address ? 1U : 2U);
  }
}

TEST(Merge, SubtractsWhatWasAliveBefore) {
  ProfileMerger merger(heap_of(0, 0));
  merger.add(heap_of(5, 100), {.sums = 0, .snapshots = -1, .without_label = "age"});
  merger.add(heap_of(7, 110, "1 to 10 min"), {.sums = 0, .without_label = "age"});
  const Profile merged = std::move(merger).take();
  ASSERT_EQ(merged.samples.size(), 1U);
  EXPECT_EQ(merged.samples[0].values, (std::vector<std::int64_t>{0, 10}));
  EXPECT_TRUE(merged.samples[0].labels.empty());
}

TEST(Merge, AddsAnyNumberUpOneByOne) {
  ProfileMerger merger(profile_of("work", 1, 3000));
  for (std::int64_t at : {3000, 1000, 2000}) merger.add(profile_of("work", 10, at));
  const Profile merged = std::move(merger).take();
  ASSERT_EQ(merged.samples.size(), 1U);
  EXPECT_EQ(merged.samples[0].values, (std::vector<std::int64_t>{3, 30}));
  EXPECT_EQ(merged.time_ns, 1000);
  EXPECT_EQ(merged.duration_ns, 2100);
}

TEST(Merge, SumsStopAtTheLimitsOfNumbers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Profile merged = merge(profile_of("work", kMost, kMost), profile_of("work", kMost, kMost));
  EXPECT_EQ(merged.samples[0].values[1], kMost);
}

TEST(Merge, KeepsOtherStacksAndOtherThreadsApart) {
  const Profile other = merge(profile_of("work", 10, 0), profile_of("rest", 5, 100));
  ASSERT_EQ(other.samples.size(), 2U);
  EXPECT_EQ(other.locations.size(), 3U);  // the root is one
  const ProfileLocation& leaf = other.locations[other.samples[1].locations[0]];
  EXPECT_EQ(other.text(other.functions[leaf.lines[0].function].name), "rest");
  EXPECT_EQ(merge(profile_of("work", 1, 0), profile_of("work", 1, 0, "second")).samples.size(), 2U);
}

TEST(Merge, KeepsTheTimesOfEvents) {
  Profile timed = profile_of("work", 5, 1100);
  timed.strings.insert(timed.strings.end(), {"end_timestamp_ns", "nanoseconds"});
  const auto last = static_cast<StringIndex>(timed.strings.size() - 1);
  timed.time_label = {.key = last - 1, .unit = last};
  timed.samples[0].times = {1150};
  timed.samples[0].events = 1;
  const Profile merged = merge(profile_of("work", 10, 1000), timed);
  ASSERT_EQ(merged.samples.size(), 2U);  // values without a time are not of those that have one
  EXPECT_EQ(merged.samples[1].times, std::vector<std::int64_t>{1150});
  EXPECT_EQ(merged.samples[1].values, (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ(merged.text(merged.time_label.key), "end_timestamp_ns");
}

TEST(Merge, TellsWhatTheLaterOneTells) {
  const Profile merged = merge(profile_of("earlier", 10, 0), profile_of("later", 5, 100));
  ASSERT_EQ(merged.comments.size(), 1U);
  EXPECT_EQ(merged.text(merged.comments[0]), "later");
}

TEST(Merge, JoinedKindsHaveColumnsOfTheirOwnAndEachCommentOnce) {
  const Profile cpu = profile_of("work", 10, 1000);
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("alloc", "bytes")};
  builder.add_sample({{builder.add_named_location("work")}, {64}, {}});
  builder.profile().time_ns = 1100;
  builder.profile().comments = {builder.intern("work"), builder.intern("of memory")};
  const Profile alloc = std::move(builder).build();
  const std::vector<const Profile*> kinds = {&cpu, &alloc};
  const Profile joined = ProfileMerger::join_kinds(kinds);
  ASSERT_EQ(joined.samples.size(), 2U);
  EXPECT_EQ(joined.samples[0].values, (std::vector<std::int64_t>{1, 10, 0}));
  EXPECT_EQ(joined.samples[1].values, (std::vector<std::int64_t>{0, 0, 64}));
  EXPECT_EQ(joined.time_ns, 1000);
  std::vector<std::string_view> comments;
  for (const StringIndex comment : joined.comments) comments.push_back(joined.text(comment));
  EXPECT_EQ(comments, (std::vector<std::string_view>{"work", "of memory"}));
}

TEST(Merge, LeavesOutColumnsThatTheLaterOneDoesNotHave) {
  Profile later = profile_of("work", 5, 100);
  later.value_types.erase(later.value_types.begin());
  later.samples[0].values = {5};
  const Profile merged = merge(profile_of("work", 10, 0), later);
  ASSERT_EQ(merged.samples.size(), 1U);
  EXPECT_EQ(merged.samples[0].values, std::vector<std::int64_t>{15});
}

}  // namespace
}  // namespace ddprof
