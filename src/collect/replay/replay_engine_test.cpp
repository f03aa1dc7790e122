#include "collect/replay/replay_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

constexpr std::array<std::byte, 3> kStack = {std::byte{1}, std::byte{2}, std::byte{3}};
constexpr std::array<std::uint64_t, 2> kKernel = {0xffffffff81000000, 0xffffffff81000100};
constexpr std::array<std::uint64_t, 3> kUser = {0x401000, 0x402000, 0x403000};

SampleEvent full_sample() {
  SampleEvent sample;
  sample.pid = Pid{7};
  sample.tid = Tid{8};
  sample.time = Nanoseconds(9);
  sample.value = 10'101'010;
  sample.has_registers = true;
  sample.is_32_bit = true;
  sample.registers.pc = 0x401000;
  sample.stack = kStack;
  sample.stack_requested = 8192;
  sample.kernel_chain = kKernel;
  sample.user_chain = kUser;
  return sample;
}

// The bytes of the events, which tell all of them apart.
std::string as_bytes(const std::vector<CollectorEvent>& events) {
  EventFileWriter writer;
  for (const CollectorEvent& event : events) writer.write(event);
  return writer.bytes();
}

std::unique_ptr<ReplayCollector> open(const std::string& recording, std::size_t events = 1) {
  return std::move(ReplayCollector::open(recording, events)).value();
}

TEST(Replay, GivesBackEveryKindOfEvent) {
  const std::string id = "0123456789";
  const std::string recording = as_bytes({
      full_sample(),
      MapEvent{.pid = Pid{7},
               .start = {0x401000},
               .length = 4096,
               .inode = 5,
               .build_id = BuildId(std::as_bytes(std::span(id))),
               .path = "/bin/true"},
      ForkEvent{.pid = Pid{9}, .parent_pid = Pid{7}},
      CommEvent{.pid = Pid{7}, .is_exec = true, .comm = "true"},
      ExitEvent{.pid = Pid{7}, .tid = Tid{8}},
      TaskTotalEvent{.pid = Pid{7}, .value = 5},
      DetachedEvent{.pid = Pid{7}},
      LostEvent{.tid = Tid{8}, .records = 3},
      ThrottleEvent{.time = Nanoseconds(4), .is_start = false},
      TickEvent{.pid = Pid{7}, .tid = Tid{8}, .value = 200'000},
  });
  const auto collector = open(recording);
  EventFileWriter again;
  std::size_t kinds = 0;
  ASSERT_TRUE(collector
                  ->drain([&](const CollectorEvent& event) {
                    EXPECT_EQ(event.index(), kinds++);
                    again.write(event);
                  })
                  .ok());
  EXPECT_EQ(kinds, std::variant_size_v<CollectorEvent>);
  EXPECT_EQ(again.bytes(), recording);
  EXPECT_EQ(collector->counters().samples, 1U);
  EXPECT_EQ(collector->counters().lost_records, 3U);
}

TEST(Replay, SampleComesWithAllThatItPointsTo) {
  const auto collector = open(as_bytes({full_sample()}));
  bool is_seen = false;
  ASSERT_TRUE(collector
                  ->drain([&](const CollectorEvent& event) {
                    const auto& sample = std::get<SampleEvent>(event);
                    EXPECT_THAT(sample.stack, testing::ElementsAreArray(kStack));
                    EXPECT_THAT(sample.kernel_chain, testing::ElementsAreArray(kKernel));
                    EXPECT_THAT(sample.user_chain, testing::ElementsAreArray(kUser));
                    EXPECT_EQ(sample.registers.pc, 0x401000U);
                    is_seen = true;
                  })
                  .ok());
  EXPECT_TRUE(is_seen);
}

TEST(Replay, HasTheBatchesAndTotalsThatWereRecorded) {
  EventFileWriter writer;
  writer.write(ExitEvent{.pid = Pid{1}});
  writer.write(RecordedTotal{0, 100});
  writer.write(RecordedBatchEnd());
  writer.write(RecordedTotal{0, 250});
  writer.write(RecordedTotal{5, 1});  // of an event that is not configured
  writer.write(RecordedBatchEnd());
  const auto collector = open(writer.bytes());
  int events = 0;
  const EventHandler count = [&](const CollectorEvent&) { ++events; };
  EXPECT_EQ(collector->exact_total(0), std::nullopt);
  ASSERT_TRUE(collector->collect({}, count).ok());
  EXPECT_EQ(events, 1);
  EXPECT_EQ(collector->exact_total(0), 100);
  EXPECT_FALSE(collector->is_finished());
  ASSERT_TRUE(collector->collect({}, count).ok());
  EXPECT_EQ(events, 1);
  EXPECT_EQ(collector->exact_total(0), 250);
  EXPECT_EQ(collector->exact_total(5), std::nullopt);
  EXPECT_TRUE(collector->is_finished());
}

TEST(Replay, AnEventThatWasNotAskedForIsDroppedAndCounted) {
  SampleEvent sample = full_sample();
  sample.event = 1;
  const auto collector = open(as_bytes({sample, TaskTotalEvent{.event = 7}}));
  ASSERT_TRUE(collector->drain([](const CollectorEvent&) { FAIL(); }).ok());
  EXPECT_EQ(collector->counters().malformed_records, 2U);
}

TEST(Replay, ADamagedFileEndsWithAnError) {
  const std::string recording = as_bytes({full_sample()});
  EXPECT_FALSE(ReplayCollector::open("", 1).ok());
  EXPECT_FALSE(ReplayCollector::open("ddprof events 0\n", 1).ok());
  constexpr std::size_t kHeader = 16;
  for (std::size_t size = kHeader + 1; size < recording.size(); ++size) {
    const auto cut = open(recording.substr(0, size));
    EXPECT_FALSE(cut->drain([](const CollectorEvent&) { FAIL(); }).ok()) << size;
    EXPECT_TRUE(cut->is_finished());
  }
  std::string unknown = recording;
  unknown[kHeader] = 'x';
  EXPECT_FALSE(open(unknown)->drain([](const CollectorEvent&) { FAIL(); }).ok());
}

TEST(ReplayEngine, ReadsTheFileThatItIsGiven) {
  const ScratchFolder folder;
  folder.write("run.events", as_bytes({full_sample()}));
  EngineOptions options;
  options.events.resize(1);
  options.source = folder.path("run.events");
  EXPECT_TRUE(ReplayEngine().open(Target::whole_host(), options).ok());
  options.source = folder.path("none");
  EXPECT_FALSE(ReplayEngine().open(Target::whole_host(), options).ok());
}

}  // namespace
}  // namespace ddprof
