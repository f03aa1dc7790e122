#include "collect/perf/ring_merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "collect/perf/record_builder.hpp"

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 1024;

struct Memory {
  perf_event_mmap_page control{};
  std::array<std::uint64_t, kBytes / 8> words{};

  void write(std::span<const std::uint64_t> record) {
    for (std::uint64_t word : record) {
      words[control.data_head % kBytes / 8] = word;
      control.data_head += 8;
    }
  }
  void write_lost(std::uint64_t time) {
    write(RecordBuilder(PERF_RECORD_LOST).u64(1).u64(1).trailer(1, 1, time, 0, 1).build());
  }
};

class RingMergeTest : public ::testing::Test {
 protected:
  RingMergeTest() {
    for (Memory& memory : memories_)
      rings_.push_back(PerfRing::over(memory.control, std::as_bytes(std::span(memory.words))));
  }
  std::vector<std::uint64_t> times_until(std::uint64_t until, std::uint64_t now = 1000) {
    std::vector<std::uint64_t> times;
    merge_.run(rings_, until, now,
               [&](std::span<const std::byte> bytes) { times.push_back(*record_time(bytes)); });
    return times;
  }

  std::array<Memory, 3> memories_;
  std::vector<PerfRing> rings_;
  RingMerge merge_;
};

TEST_F(RingMergeTest, OrdersTheRecordsOfAllRings) {
  for (std::uint64_t time : {10U, 40U, 50U}) memories_[0].write_lost(time);
  for (std::uint64_t time : {20U, 30U, 60U}) memories_[1].write_lost(time);
  EXPECT_THAT(times_until(RingMerge::kNoLimit), ElementsAre(10, 20, 30, 40, 50, 60));
}

TEST_F(RingMergeTest, LeavesWhatIsTooYoungForTheNextRound) {
  memories_[0].write_lost(10);
  memories_[0].write_lost(90);
  memories_[1].write_lost(80);
  EXPECT_THAT(times_until(50), ElementsAre(10));
  // Arrives late, but is older than what waits.
  memories_[2].write_lost(70);
  EXPECT_THAT(times_until(85), ElementsAre(70, 80));
  EXPECT_THAT(times_until(RingMerge::kNoLimit), ElementsAre(90));
}

TEST_F(RingMergeTest, GivesBackTheSpaceOfWhatItHandedOver) {
  memories_[0].write_lost(10);
  std::uint64_t first = memories_[0].control.data_head;
  memories_[0].write_lost(90);
  times_until(50);
  EXPECT_EQ(memories_[0].control.data_tail, first);
  times_until(RingMerge::kNoLimit);
  EXPECT_EQ(memories_[0].control.data_tail, memories_[0].control.data_head);
}

TEST_F(RingMergeTest, GivesSpaceBackDuringALongRound) {
  for (std::uint64_t time = 1; time <= 10; ++time) memories_[0].write_lost(time);
  std::uint64_t tail_at_last = 0;
  merge_.run(rings_, RingMerge::kNoLimit, 1000,
             [&](std::span<const std::byte>) { tail_at_last = memories_[0].control.data_tail; });
  EXPECT_GT(tail_at_last, 0U);
}

TEST_F(RingMergeTest, IsNotDammedUpByATimeFromTheFuture) {
  memories_[0].write_lost(~std::uint64_t{0} - 5);
  memories_[0].write_lost(20);
  memories_[1].write_lost(10);
  EXPECT_EQ(times_until(50).size(), 3U);
  EXPECT_EQ(merge_.malformed(), 1U);
}

TEST_F(RingMergeTest, PassesOverRecordsTooShortForATime) {
  memories_[0].write(RecordBuilder(PERF_RECORD_LOST).build());
  memories_[0].write_lost(20);
  EXPECT_THAT(times_until(RingMerge::kNoLimit), ElementsAre(20));
  EXPECT_EQ(merge_.malformed(), 1U);
}

TEST_F(RingMergeTest, HasNothingToSayAboutEmptyRings) {
  EXPECT_THAT(times_until(RingMerge::kNoLimit), IsEmpty());
}

}  // namespace
}  // namespace ddprof
