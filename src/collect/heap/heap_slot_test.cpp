#include "collect/heap/heap_slot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

class HeapSlotTest : public testing::Test {
 protected:
  HeapSlotTest() : slot_(map()) {}

  MappedRegion map() {
    MappedRegion memory = MappedRegion::map_anonymous_shared(sizeof(ddprof_heap_slot)).value();
    shared_ = reinterpret_cast<ddprof_heap_slot*>(memory.data());
    return memory;
  }
  // As the library writes it, or as a hostile one does.
  void write(ddprof_heap_record record, const std::vector<std::uint64_t>& payload) {
    std::vector<std::uint64_t> words(sizeof record / 8);
    std::memcpy(words.data(), &record, sizeof record);
    words.insert(words.end(), payload.begin(), payload.end());
    for (std::size_t i = 0; i < words.size(); ++i)
      shared_->ring[(shared_->head + i) % (DDPROF_HEAP_RING_BYTES / 8)] = words[i];
    shared_->head += words.size();
  }
  void write_frames(const std::vector<std::uint64_t>& frames) {
    write({.kind = DDPROF_HEAP_FRAMES, .payload = static_cast<std::uint32_t>(frames.size()), .size = 10},
          frames);
  }

  ddprof_heap_slot* shared_ = nullptr;
  HeapSlot slot_;
};

TEST_F(HeapSlotTest, ReadsRecordsInTheirOrderAndOverTheEnd) {
  for (std::uint64_t round = 0; round < 20'000; ++round) {  // several times the ring
    write_frames({round, round + 1});
    const auto record = slot_.read(0s);
    ASSERT_TRUE(record);
    ASSERT_EQ(record->payload.size(), 2U);
    EXPECT_EQ(record->payload[1], round + 1);
    EXPECT_EQ(record->header.size, 10U);
  }
  EXPECT_FALSE(slot_.read(0s));
  EXPECT_EQ(shared_->tail, shared_->head);
  EXPECT_EQ(slot_.malformed(), 0U);
  for (const std::uint64_t word : shared_->ring)
    ASSERT_EQ(word, 0U) << "for the next one that is written there";
}

TEST_F(HeapSlotTest, PassesOverARecordThatIsNeverComplete) {
  write({.kind = DDPROF_HEAP_BEGUN, .payload = 3}, {1, 2, 3});
  write_frames({7});
  EXPECT_FALSE(slot_.read(0s));
  EXPECT_FALSE(slot_.read(HeapSlot::kPatience - 1ns)) << "it may still be written";
  const auto record = slot_.read(HeapSlot::kPatience);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->payload[0], 7U);
  EXPECT_EQ(slot_.malformed(), 1U);
}

TEST_F(HeapSlotTest, AThreadThatEndsBeforeItSaysHowLongItsRecordIsCostsWhatFollows) {
  shared_->head += 8;
  write_frames({7});
  EXPECT_FALSE(slot_.read(0s));
  EXPECT_FALSE(slot_.read(HeapSlot::kPatience));
  EXPECT_EQ(slot_.malformed(), 1U);
  write_frames({8});
  EXPECT_EQ(slot_.read(2s)->payload[0], 8U);
}

TEST_F(HeapSlotTest, BelievesNoLengthAndNoHead) {
  write({.kind = DDPROF_HEAP_FRAMES, .payload = 1'000'000}, {1});
  EXPECT_FALSE(slot_.read(0s));
  write({.kind = 77, .payload = 1}, {1});
  EXPECT_FALSE(slot_.read(0s));
  shared_->head += std::uint64_t{1} << 40U;
  EXPECT_FALSE(slot_.read(0s));
  EXPECT_EQ(slot_.malformed(), 3U);
  shared_->head = 5;  // back
  EXPECT_FALSE(slot_.read(0s));
  write_frames({9});
  EXPECT_EQ(slot_.read(0s)->payload[0], 9U) << "and goes on where it says";
}

TEST_F(HeapSlotTest, CountersThatGoBackCountNothing) {
  shared_->counters.samples = 10;
  EXPECT_EQ(slot_.take_counters().samples, 10U);
  shared_->counters.samples = 12;
  EXPECT_EQ(slot_.take_counters().samples, 2U);
  shared_->counters.samples = 3;
  EXPECT_EQ(slot_.take_counters().samples, 0U);
}

TEST_F(HeapSlotTest, TellsBlocksThatAreCompletelyWritten) {
  shared_->keys[5] = 0x1000;
  shared_->blocks[5] = {.size = 10, .interval = 100, .stack = 3, .time = 4};
  shared_->keys[6] = 0x2001;  // being written
  shared_->keys[7] = 0x3000;
  shared_->blocks[7] = {.size = 10, .interval = 0, .stack = 3, .time = 4};
  std::vector<std::uint64_t> found;
  slot_.for_each_block([&](std::uint64_t address, const ddprof_heap_block&) { found.push_back(address); });
  EXPECT_EQ(found, std::vector<std::uint64_t>{0x1000});
}

TEST_F(HeapSlotTest, PublishesModulesIntoTheMapThatIsNotInUse) {
  const std::vector<ddprof_heap_module> first = {{.start = 1, .end = 2}};
  slot_.publish(first);
  EXPECT_EQ(shared_->control.map, 1U);
  EXPECT_EQ(shared_->maps[1].count, 1U);
  slot_.publish(std::vector<ddprof_heap_module>(10'000));
  EXPECT_EQ(shared_->control.map, 2U);
  EXPECT_EQ(shared_->maps[0].count, DDPROF_HEAP_MODULES);
  EXPECT_EQ(shared_->maps[1].modules[0].end, 2U);
}

// Freed and allocated anew at the same address, while it is read.
TEST_F(HeapSlotTest, NeverTellsHalfOfABlock) {
  std::atomic<bool> is_done{false};
  std::thread library([&] {
    for (std::uint64_t i = 1; i <= 300'000; ++i) {
      __atomic_store_n(&shared_->keys[5], 0x1001, __ATOMIC_RELEASE);
      volatile ddprof_heap_block& block = shared_->blocks[5];
      block.size = i;
      block.interval = i;
      block.stack = i;
      block.time = i;
      __atomic_store_n(&shared_->keys[5], 0x1000, __ATOMIC_RELEASE);
    }
    is_done = true;
  });
  std::uint64_t torn = 0;
  while (!is_done)
    slot_.for_each_block([&](std::uint64_t, const ddprof_heap_block& block) {
      torn += block.size != block.interval || block.size != block.stack || block.size != block.time;
    });
  library.join();
  EXPECT_EQ(torn, 0U);
}

TEST_F(HeapSlotTest, OfAProcessThatHasEndedNothingIsWaitedFor) {
  write({.kind = DDPROF_HEAP_BEGUN, .payload = 3}, {1, 2, 3});
  write_frames({7});
  const auto record = slot_.read(0s, true);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->payload[0], 7U);
}

TEST_F(HeapSlotTest, WhatOneWorkerHasToldIsNotToldByTheNext) {
  shared_->counters.lost = 10;
  EXPECT_EQ(slot_.take_counters().lost, 10U);
  MappedRegion same = MappedRegion::map_anonymous_shared(sizeof(ddprof_heap_slot)).value();
  std::memcpy(same.data(), shared_, sizeof(ddprof_heap_slot));
  HeapSlot next(std::move(same));
  EXPECT_EQ(next.take_counters().lost, 0U);
}

TEST(HeapWeight, IsTheSizeOverTheChanceToBeSampled) {
  const HeapWeight small = HeapWeight::of(64, 524288, 1);
  EXPECT_NEAR(static_cast<double>(small.bytes), 524288 + 32, 1);
  EXPECT_NEAR(static_cast<double>(small.objects), 524288.0 / 64, 1);
  const HeapWeight middle = HeapWeight::of(524288, 524288, 1);
  EXPECT_NEAR(static_cast<double>(middle.bytes), 524288 / (1 - std::exp(-1.0)), 1);
  const HeapWeight large = HeapWeight::of(std::uint64_t{1} << 30U, 524288, 1);
  EXPECT_EQ(large.bytes, std::int64_t{1} << 30U);
  EXPECT_EQ(large.objects, 1);
}

// Of a block as large as the interval a sample stands for 1.58: neither 1 nor 2.
TEST(HeapWeight, CountsObjectsWithoutBias) {
  constexpr int kSamples = 100'000;
  std::int64_t sum = 0;
  for (std::uint64_t time = 0; time < kSamples; ++time)
    sum += HeapWeight::of(524288, 524288, time * 1000).objects;
  const double expected = 1 / (1 - std::exp(-1.0));
  EXPECT_NEAR(static_cast<double>(sum) / kSamples, expected, 0.01);
}

TEST(HeapWeight, OfWhatCannotBeIsANumber) {
  EXPECT_GT(HeapWeight::of(0, 1, 0).bytes, 0);
  EXPECT_GT(HeapWeight::of(~std::uint64_t{0}, ~std::uint64_t{0}, 0).bytes, 0);
  EXPECT_GT(HeapWeight::of(1, ~std::uint64_t{0}, 0).bytes, 0);
  EXPECT_GT(HeapWeight::of(5, 0, 0).bytes, 0);
}

}  // namespace
}  // namespace ddprof
