#include "profile/aggregator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

namespace ddprof {
namespace {

using ::testing::ElementsAre;

constexpr ThreadKey kMain{Pid{10}, Tid{10}};
constexpr ThreadKey kWorker{Pid{10}, Tid{11}};

Frame code(std::uint32_t file, std::uint64_t address) { return {.file = FileId{file}, .address = address}; }

std::vector<Column> cpu_columns() { return {{"samples", "count"}, {"cpu", "nanoseconds"}}; }

std::vector<Frame> frames_of(const AggregatedProfile& profile, std::uint32_t stack) {
  std::vector<Frame> frames;
  for (std::uint32_t index : profile.stack(stack)) frames.push_back(profile.frames[index]);
  return frames;
}

std::int64_t total(const AggregatedProfile& profile, std::size_t column) {
  std::int64_t sum = 0;
  for (std::size_t sample = 0; sample < profile.samples.size(); ++sample)
    sum += profile.sample_values(sample)[column];
  return sum;
}

TEST(Aggregator, SumsTheValuesOfARepeatedStack) {
  Aggregator aggregator(cpu_columns());
  const std::vector<Frame> stack{code(1, 0x10), code(1, 0x20)};
  aggregator.add(kMain, stack, {{0, 1}, {1, 100}});
  aggregator.add(kMain, stack, {{0, 1}, {1, 150}});

  const AggregatedProfile profile = aggregator.take(Nanoseconds(5), Nanoseconds(9));
  EXPECT_EQ(profile.start, Nanoseconds(5));
  EXPECT_EQ(profile.end, Nanoseconds(9));
  ASSERT_EQ(profile.samples.size(), 1U);
  EXPECT_EQ(frames_of(profile, profile.samples[0].stack), stack);
  EXPECT_THAT(profile.sample_values(0), ElementsAre(2, 250));
}

TEST(Aggregator, KeepsContextsApart) {
  Aggregator aggregator(cpu_columns());
  const std::vector<Frame> stack{code(1, 0x10)};
  const SampleContext first{.span_id = 1}, second{.span_id = 2};
  for (const SampleContext* context : {&first, &second, &first})
    aggregator.add(kMain, stack, {{0, 1}}, context);
  aggregator.add(kMain, stack, {{0, 5}});

  const AggregatedProfile profile = aggregator.take({}, {});
  ASSERT_EQ(profile.samples.size(), 3U);
  EXPECT_EQ(profile.contexts[profile.samples[1].context - 1], second);
  EXPECT_EQ(profile.sample_values(0)[0], 2);
  EXPECT_EQ(profile.samples[2].context, 0U);
  EXPECT_EQ(profile.sample_values(2)[0], 5);
}

TEST(Aggregator, AddsUpWhatOtherFramesMakeEqual) {
  Aggregator aggregator(cpu_columns());
  const std::vector<Frame> early{code(1, 0x10), code(3, 0x30)}, late{code(2, 0x1010), code(3, 0x30)};
  const SampleContext context{.span_id = 1};
  aggregator.add(kMain, early, {{0, 1}, {1, 100}}, &context);
  aggregator.add_moment(aggregator.add(kWorker, late, {{0, 1}, {1, 10}}), Nanoseconds(6));
  aggregator.add_moment(aggregator.add(kMain, late, {{0, 1}, {1, 150}}, &context), Nanoseconds(7));
  const AggregatedProfile before = aggregator.take(Nanoseconds(5), Nanoseconds(9));
  std::vector<Frame> frames = before.frames;
  std::replace(frames.begin(), frames.end(), early[0], late[0]);

  const AggregatedProfile profile = with_frames(before, frames);
  EXPECT_EQ(profile.end, Nanoseconds(9));
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_EQ(profile.stacks.size(), 1U);
  EXPECT_EQ(frames_of(profile, 0), late);
  EXPECT_THAT(profile.sample_values(0), ElementsAre(2, 250));
  EXPECT_THAT(profile.sample_values(1), ElementsAre(1, 10));
  EXPECT_EQ(profile.contexts[profile.samples[0].context - 1], context);
  EXPECT_EQ(profile.threads[profile.samples[1].thread], kWorker);
  ASSERT_EQ(profile.moments.size(), 2U);
  EXPECT_EQ(profile.moments[1].sample, 0U);
  EXPECT_EQ(profile.moments[1].time, Nanoseconds(7));
}

TEST(Aggregator, CountsContextsThatItHasNoRoomFor) {
  Aggregator aggregator(cpu_columns(), {.contexts = 1});
  const std::vector<Frame> stack{code(1, 0x10)};
  for (std::uint64_t span = 1; span <= 3; ++span) {
    const SampleContext context{.span_id = span};
    aggregator.add(kMain, stack, {{0, 1}}, &context);
  }
  const AggregatedProfile profile = aggregator.take({}, {});
  EXPECT_EQ(profile.contexts.size(), 1U);
  EXPECT_EQ(profile.contexts_over_budget, 2U);
  EXPECT_EQ(total(profile, 0), 3);
}

TEST(Aggregator, KeepsThreadsApartAndSharesTheirStack) {
  Aggregator aggregator(cpu_columns());
  const std::vector<Frame> stack{code(1, 0x10)};
  aggregator.add(kMain, stack, {{0, 1}});
  aggregator.add(kWorker, stack, {{0, 2}});

  const AggregatedProfile profile = aggregator.take({}, {});
  EXPECT_EQ(profile.stacks.size(), 1U);
  ASSERT_EQ(profile.samples.size(), 2U);
  EXPECT_EQ(profile.threads[profile.samples[0].thread], kMain);
  EXPECT_EQ(profile.threads[profile.samples[1].thread], kWorker);
  EXPECT_EQ(profile.sample_values(1)[0], 2);
}

TEST(Aggregator, TellsFramesApartByEveryField) {
  Aggregator aggregator(std::vector<Column>{{"samples", "count"}});
  const std::vector<Frame> distinct{
      code(1, 0x10),
      code(2, 0x10),
      code(1, 0x11),
      {.kind = FrameKind::kernel, .file = FileId{1}, .address = 0x10},
      {.kind = FrameKind::stopped, .reason = StopReason::bad_memory, .file = FileId{1}, .address = 0x10},
      {.kind = FrameKind::stopped, .reason = StopReason::no_unwind_info, .file = FileId{1}, .address = 0x10},
      {.kind = FrameKind::accounted, .loss = Loss::lost},
      {.kind = FrameKind::accounted, .loss = Loss::unsampled},
  };
  for (const Frame& frame : distinct) aggregator.add(kMain, std::span(&frame, 1), {{0, 1}});
  EXPECT_EQ(aggregator.take({}, {}).stacks.size(), distinct.size());
}

TEST(Aggregator, TellsAStackFromItsPrefixAndFromItsReverse) {
  Aggregator aggregator(std::vector<Column>{{"samples", "count"}});
  const std::vector<Frame> both{code(1, 1), code(1, 2)};
  const std::vector<Frame> reversed{both[1], both[0]};
  aggregator.add(kMain, both, {{0, 1}});
  aggregator.add(kMain, std::span(both).first(1), {{0, 1}});
  aggregator.add(kMain, reversed, {{0, 1}});
  aggregator.add(kMain, {}, {{0, 1}});
  const AggregatedProfile profile = aggregator.take({}, {});
  EXPECT_EQ(profile.stacks.size(), 4U);
  EXPECT_EQ(profile.frames.size(), 2U);
}

TEST(Aggregator, StartsEmptyAfterAHandOver) {
  Aggregator aggregator(cpu_columns());
  const Frame frame = code(1, 1);
  aggregator.add(kMain, std::span(&frame, 1), {{0, 1}});
  (void)aggregator.take({}, {});
  EXPECT_TRUE(aggregator.take({}, {}).samples.empty());

  aggregator.add(kWorker, std::span(&frame, 1), {{0, 7}});
  const AggregatedProfile second = aggregator.take({}, {});
  ASSERT_EQ(second.samples.size(), 1U);
  EXPECT_THAT(second.threads, ElementsAre(kWorker));
  EXPECT_THAT(second.sample_values(0), ElementsAre(7, 0));
}

TEST(Aggregator, FoldsStacksPastTheBudgetIntoACountedMarkerAndLosesNoValue) {
  Aggregator aggregator(std::vector<Column>{{"cpu", "nanoseconds"}}, {.stacks = 3});
  for (std::uint64_t address = 0; address < 10; ++address) {
    const Frame frame = code(1, address);
    aggregator.add(kMain, std::span(&frame, 1), {{0, 5}});
  }
  const AggregatedProfile profile = aggregator.take({}, {});
  EXPECT_EQ(total(profile, 0), 50);
  EXPECT_EQ(profile.over_budget, 7U);
  ASSERT_EQ(profile.samples.size(), 4U);
  const Frame marker = frames_of(profile, profile.samples[3].stack).at(0);
  EXPECT_EQ(marker.kind, FrameKind::accounted);
  EXPECT_EQ(marker.loss, Loss::too_many_stacks);
  EXPECT_EQ(profile.sample_values(3)[0], 35);
}

TEST(Aggregator, HoldsEveryBudgetAtOnce) {
  Aggregator aggregator(
      {{"samples", "count"}},
      {.stacks = 8, .distinct_frames = 16, .stored_frames = 24, .threads = 4, .samples = 10});
  std::mt19937 random(1);  // NOLINT: a fixed seed makes the test repeatable
  for (int turn = 0; turn < 1000; ++turn) {
    std::vector<Frame> frames(random() % 6);
    for (Frame& frame : frames) frame = code(1, random() % 40);
    aggregator.add({Pid{1}, Tid{static_cast<std::int32_t>(random() % 20)}}, frames, {{0, 1}});
  }
  const AggregatedProfile profile = aggregator.take({}, {});
  EXPECT_EQ(total(profile, 0), 1000);
  // Each budget may be exceeded by the one entry that says so.
  EXPECT_LE(profile.stacks.size(), 9U);
  EXPECT_LE(profile.frames.size(), 17U);
  EXPECT_LE(profile.frame_indices.size(), 25U);
  EXPECT_LE(profile.threads.size(), 5U);
  EXPECT_LE(profile.samples.size(), 11U);
}

TEST(Aggregator, AgreesWithAnObviousTwin) {
  using Key = std::tuple<ThreadKey, std::vector<Frame>>;
  std::map<Key, std::int64_t> expected;
  Aggregator aggregator(std::vector<Column>{{"cpu", "nanoseconds"}});
  std::mt19937 random(2);  // NOLINT
  for (int turn = 0; turn < 20000; ++turn) {
    std::vector<Frame> frames(1 + random() % 8);
    for (Frame& frame : frames) frame = code(1 + random() % 2, random() % 3);
    const ThreadKey thread{Pid{1}, Tid{static_cast<std::int32_t>(random() % 3)}};
    const auto value = static_cast<std::int64_t>(random() % 1000);
    aggregator.add(thread, frames, {{0, value}});
    expected[{thread, frames}] += value;
  }
  std::map<Key, std::int64_t> actual;
  const AggregatedProfile profile = aggregator.take({}, {});
  for (std::size_t at = 0; at < profile.samples.size(); ++at) {
    const auto& sample = profile.samples[at];
    const auto [entry, is_new] = actual.emplace(
        Key{profile.threads[sample.thread], frames_of(profile, sample.stack)}, profile.sample_values(at)[0]);
    EXPECT_TRUE(is_new) << "the same sample twice";
  }
  EXPECT_EQ(actual, expected);
}

TEST(AggregatorBudget, FollowsTheMemoryThatThereIs) {
  const AggregatorBudget any = AggregatorBudget::within(0);
  EXPECT_EQ(any.stored_frames, 16'000'000U);
  EXPECT_EQ(any.distinct_frames, 2'000'000U);
  const AggregatorBudget small = AggregatorBudget::within(std::uint64_t{32} << 20U);
  EXPECT_EQ(small.stored_frames, 1U << 20U);
  EXPECT_EQ(small.distinct_frames, 1U << 16U);
  EXPECT_EQ(small.stacks, any.stacks);
  EXPECT_EQ(AggregatorBudget::within(std::uint64_t{1} << 40U).stored_frames, any.stored_frames);
}

}  // namespace
}  // namespace ddprof
