#include "collect/merged_collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "collect/replay/replay_engine.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;

// A recording: each batch is one call of collect().
std::unique_ptr<Collector> recorded(const std::vector<std::vector<CollectorEvent>>& batches,
                                    std::optional<std::int64_t> total = std::nullopt) {
  EventFileWriter writer;
  for (const auto& batch : batches) {
    for (const CollectorEvent& event : batch) writer.write(event);
    if (total) writer.write(RecordedTotal{0, *total});
    writer.write(RecordedBatchEnd());
  }
  return std::move(ReplayCollector::open(writer.bytes(), 1)).value();
}

MergedCollector merged(std::unique_ptr<Collector> first, std::unique_ptr<Collector> second) {
  std::vector<std::unique_ptr<Collector>> both;
  both.push_back(std::move(first));
  both.push_back(std::move(second));
  return MergedCollector(std::move(both));
}

CollectorEvent at(std::int64_t time, std::int32_t pid = 1) {
  return ExitEvent{.pid = Pid{pid}, .time = Nanoseconds(time)};
}

std::vector<std::int64_t> times_of(const std::vector<CollectorEvent>& events) {
  std::vector<std::int64_t> times;
  for (const CollectorEvent& event : events) {
    const auto* exit = std::get_if<ExitEvent>(&event);
    times.push_back(exit != nullptr ? exit->time.count() : -1);
  }
  return times;
}

TEST(MergedCollector, EventsOfTwoRecordingsComeInTheOrderOfTheirTimes) {
  MergedCollector collector =
      merged(recorded({{at(1), at(4)}, {at(7), at(8)}}), recorded({{at(2), at(3), at(6)}, {at(9)}}));
  std::vector<CollectorEvent> events;
  const EventHandler keep = [&](const CollectorEvent& event) { events.push_back(event); };
  ASSERT_TRUE(collector.collect({}, keep).ok());
  EXPECT_THAT(times_of(events), ElementsAre(1, 2, 3, 4));  // the first may have more before 6
  ASSERT_FALSE(collector.is_finished());
  ASSERT_TRUE(collector.collect({}, keep).ok());
  EXPECT_THAT(times_of(events), ElementsAre(1, 2, 3, 4, 6, 7, 8, 9));
  EXPECT_TRUE(collector.is_finished());
}

TEST(MergedCollector, OneThatIsSilentDoesNotHoldUpTheOther) {
  MergedCollector collector = merged(recorded({{at(1)}, {}, {at(9)}}), recorded({{at(5)}, {at(6)}, {}}));
  std::vector<CollectorEvent> events;
  const EventHandler keep = [&](const CollectorEvent& event) { events.push_back(event); };
  ASSERT_TRUE(collector.collect({}, keep).ok());
  EXPECT_THAT(times_of(events), ElementsAre(1));
  ASSERT_TRUE(collector.collect({}, keep).ok());
  EXPECT_THAT(times_of(events), ElementsAre(1, 5, 6));
  ASSERT_TRUE(collector.drain(keep).ok());
  EXPECT_THAT(times_of(events), ElementsAre(1, 5, 6, 9));
}

TEST(MergedCollector, WhatHasNoTimeStaysBehindWhatWasBeforeIt) {
  MergedCollector collector =
      merged(recorded({{at(1), TaskTotalEvent{.value = 5}, at(4)}}), recorded({{at(2)}}));
  std::vector<CollectorEvent> events;
  ASSERT_TRUE(collector.drain([&](const CollectorEvent& event) { events.push_back(event); }).ok());
  EXPECT_THAT(times_of(events), ElementsAre(1, -1, 2, 4));
}

TEST(MergedCollector, EventsThatWaitKeepWhatTheyPointTo) {
  const std::array<std::byte, 2> stack = {std::byte{1}, std::byte{2}};
  const std::array<std::uint64_t, 2> chain = {3, 4};
  SampleEvent sample{.time = Nanoseconds(5)};
  sample.stack = stack;
  sample.user_chain = chain;
  MergedCollector collector = merged(
      recorded({{at(1)}, {at(8)}}),
      recorded({{sample, CommEvent{.time = Nanoseconds(6), .comm = "a name that is not short"}}, {at(7)}}));
  std::vector<std::string> names;
  std::vector<std::uint64_t> addresses;
  std::size_t bytes = 0;
  const EventHandler handle = [&](const CollectorEvent& event) {
    if (const auto* taken = std::get_if<SampleEvent>(&event)) {
      bytes += taken->stack.size();
      addresses.assign(taken->user_chain.begin(), taken->user_chain.end());
    } else if (const auto* comm = std::get_if<CommEvent>(&event)) {
      names.emplace_back(comm->comm);
    }
  };
  ASSERT_TRUE(collector.collect({}, handle).ok());
  EXPECT_EQ(bytes, 0U);
  ASSERT_TRUE(collector.collect({}, handle).ok());
  EXPECT_EQ(bytes, 2U);
  EXPECT_THAT(addresses, ElementsAre(3, 4));
  EXPECT_THAT(names, ElementsAre("a name that is not short"));
}

TEST(MergedCollector, IsTheSumOfItsParts) {
  MergedCollector collector = merged(recorded({{SampleEvent{}, SampleEvent{}}}),
                                     recorded({{SampleEvent{}, LostEvent{.records = 4}}}, 70));
  ASSERT_TRUE(collector.drain([](const CollectorEvent&) {}).ok());
  EXPECT_EQ(collector.counters().samples, 3U);
  EXPECT_EQ(collector.counters().lost_records, 4U);
  EXPECT_EQ(collector.exact_total(0), 70);
  EXPECT_EQ(collector.pausable(), nullptr);
}

// Sends a note when it is taken over, and keeps those that it is given.
class NotedCollector final : public Collector, public Handover {
 public:
  explicit NotedCollector(std::byte mark) : mark_(mark) {}

  Result<void> collect(std::chrono::milliseconds, const EventHandler&) override { return {}; }
  Result<void> drain(const EventHandler&) override { return {}; }
  std::optional<std::int64_t> exact_total(std::uint32_t) override { return std::nullopt; }
  bool is_finished() override { return true; }
  [[nodiscard]] CollectorCounters counters() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "noted"; }
  [[nodiscard]] std::vector<std::string> notices() const override { return {}; }

  Handover* handover() override { return this; }
  Result<void> take_over(int, NoteSender sender) override {
    sender(std::span(&mark_, 1), -1);
    return {};
  }
  void follow(std::span<const std::byte> note, UniqueFd) override {
    followed.insert(followed.end(), note.begin(), note.end());
  }
  void reclaim() override { is_reclaimed = true; }

  std::vector<std::byte> followed;
  bool is_reclaimed = false;

 private:
  std::byte mark_;
};

TEST(MergedCollector, NotesReachTheCollectorThatTheyAreOf) {
  auto first = std::make_unique<NotedCollector>(std::byte{11});
  auto second = std::make_unique<NotedCollector>(std::byte{22});
  NotedCollector& one = *first;
  NotedCollector& other = *second;
  MergedCollector collector = merged(std::move(first), std::move(second));
  ASSERT_TRUE(
      collector
          .take_over(-1, [&](std::span<const std::byte> note, int) { collector.follow(note, UniqueFd()); })
          .ok());
  EXPECT_THAT(one.followed, ElementsAre(std::byte{11}));
  EXPECT_THAT(other.followed, ElementsAre(std::byte{22}));
  collector.follow({}, UniqueFd());
  const std::byte unknown{2};
  collector.follow(std::span(&unknown, 1), UniqueFd());
  collector.reclaim();
  EXPECT_TRUE(one.is_reclaimed && other.is_reclaimed);
}

}  // namespace
}  // namespace ddprof
