#include "inject/live_set.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "inject/ring_writer.hpp"

namespace inject {
namespace {

std::unique_ptr<ddprof_heap_slot> make_slot() { return std::make_unique<ddprof_heap_slot>(); }

TEST(LiveSet, RemembersWhatWasAddedUntilItIsRemoved) {
  const auto slot = make_slot();
  const auto full = std::make_unique<FullBuckets>();
  LiveSet live(*slot, *full);
  EXPECT_EQ(live.add(0x1000, {.size = 10, .interval = 1, .stack = 2, .time = 3}), LiveSet::Added::yes);
  ddprof_heap_block block{};
  EXPECT_FALSE(live.remove(0x1010));
  EXPECT_TRUE(live.remove(0x1000, &block));
  EXPECT_EQ(block.size, 10U);
  EXPECT_FALSE(live.remove(0x1000));
}

TEST(LiveSet, ABlockWhoseEndWasNotSeenIsReplaced) {
  const auto slot = make_slot();
  const auto full = std::make_unique<FullBuckets>();
  LiveSet live(*slot, *full);
  live.add(0x1000, {.size = 10, .interval = 1, .stack = 2, .time = 3});
  EXPECT_EQ(live.add(0x1000, {.size = 20, .interval = 1, .stack = 2, .time = 4}), LiveSet::Added::replaced);
  ddprof_heap_block block{};
  EXPECT_TRUE(live.remove(0x1000, &block));
  EXPECT_EQ(block.size, 20U);
}

TEST(LiveSet, HoldsAHundredThousandBlocks) {
  const auto slot = make_slot();
  const auto full = std::make_unique<FullBuckets>();
  LiveSet live(*slot, *full);
  uint32_t missed = 0;
  for (uint64_t i = 1; i <= 100'000; ++i)
    missed += live.add(i * 64, {.size = i, .interval = 1}) != LiveSet::Added::yes;
  EXPECT_EQ(missed, 0U);
  for (uint64_t i = 1; i <= 100'000; ++i) EXPECT_TRUE(live.remove(i * 64));
}

TEST(LiveSet, SaysWhenItIsFull) {
  const auto slot = make_slot();
  const auto full = std::make_unique<FullBuckets>();
  LiveSet live(*slot, *full);
  uint32_t added = 0;
  for (uint64_t i = 1; i <= 2 * DDPROF_HEAP_LIVE_KEYS; ++i)
    added += live.add(i * 16, {.size = i}) == LiveSet::Added::yes;
  for (uint64_t i = 1; i <= 2 * DDPROF_HEAP_LIVE_KEYS; ++i) added -= live.remove(i * 16);
  EXPECT_EQ(added, 0U) << "also those that found their bucket full";
  for (uint64_t i = 1; i <= 2 * DDPROF_HEAP_LIVE_KEYS; ++i)
    added += live.add(i * 16, {.size = i}) == LiveSet::Added::yes;
  EXPECT_LE(added, DDPROF_HEAP_LIVE_KEYS);
  EXPECT_GT(added, DDPROF_HEAP_LIVE_KEYS / 2);
}

TEST(LiveSet, ThreadsDoNotDisturbEachOther) {
  const auto slot = make_slot();
  const auto full = std::make_unique<FullBuckets>();
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t number = 1; number <= 4; ++number)
    threads.emplace_back([&, number] {
      LiveSet live(*slot, *full);
      for (uint64_t i = 0; i < 50'000; ++i) {
        const uint64_t address = (number << 40U) + i % 1'000 * 16;
        ddprof_heap_block block{};
        if (live.add(address, {.size = address, .interval = 1}) != LiveSet::Added::yes ||
            !live.remove(address, &block) || block.size != address)
          ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  for (const uint64_t key : slot->keys) EXPECT_EQ(key, 0U);
}

TEST(PageFilter, CountsBlocksOfAPage) {
  const auto filter = std::make_unique<PageFilter>();
  EXPECT_FALSE(filter->may_have(0x5000));
  filter->add(0x5010);
  filter->add(0x5ff0);
  filter->remove(0x5010);
  EXPECT_TRUE(filter->may_have(0x5000));
  filter->remove(0x5ff0);
  EXPECT_FALSE(filter->may_have(0x5000));
  for (int i = 0; i < 300; ++i) filter->add(0x6000);
  for (int i = 0; i < 300; ++i) filter->remove(0x6000);
  EXPECT_TRUE(filter->may_have(0x6000)) << "more than can be counted: never sure again";
}

TEST(RingWriter, RefusesWhatDoesNotFit) {
  const auto slot = make_slot();
  RingWriter writer;
  EXPECT_TRUE(writer.reserve(*slot, DDPROF_HEAP_RING_BYTES / 8));
  EXPECT_FALSE(writer.reserve(*slot, RingWriter::kHeaderWords));
  slot->tail = RingWriter::kHeaderWords;
  EXPECT_TRUE(writer.reserve(*slot, RingWriter::kHeaderWords));
  slot->tail = ~uint64_t{0};  // that nobody can have read
  EXPECT_FALSE(writer.reserve(*slot, RingWriter::kHeaderWords));
}

}  // namespace
}  // namespace inject
