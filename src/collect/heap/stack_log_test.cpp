#include "collect/heap/stack_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StackLogTest : public testing::Test {
 protected:
  std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(memory_.data()); }

  MappedRegion memory_ = MappedRegion::map_anonymous_shared(4096).value();
  const std::vector<std::uint64_t> stack_ = {11, 12, 13};
};

TEST_F(StackLogTest, TheNextWorkerFindsWhatWasAdded) {
  StackLog(memory_).add(Pid{7}, 99, stack_);
  StackLog next(memory_);
  EXPECT_THAT(next.find(Pid{7}, 99), ElementsAre(11, 12, 13));
  EXPECT_THAT(next.find(Pid{8}, 99), IsEmpty());
  next.add(Pid{7}, 100, stack_);
  EXPECT_EQ(StackLog(memory_).size(), 2U);
}

TEST_F(StackLogTest, WithoutRoomThoseThatAreNeededMoveTogether) {
  StackLog log(memory_);
  std::uint64_t added = 0;
  while (log.add(Pid{1}, added, stack_)) ++added;
  EXPECT_EQ(added, (512 - 1) / 6);
  for (std::uint64_t id = 0; id < added; ++id)
    if (id != 40) log.remove(Pid{1}, id);
  EXPECT_TRUE(log.add(Pid{2}, 5, stack_));
  EXPECT_THAT(log.find(Pid{1}, 40), ElementsAre(11, 12, 13));
  const StackLog next(memory_);
  EXPECT_EQ(next.size(), 2U);
  EXPECT_THAT(next.find(Pid{2}, 5), ElementsAre(11, 12, 13));
}

TEST_F(StackLogTest, WhatAWorkerWroteIsNotBelieved) {
  words()[0] = ~std::uint64_t{0};
  words()[3] = 1'000'000;
  StackLog log(memory_);
  EXPECT_EQ(log.size(), 0U);
  EXPECT_TRUE(log.add(Pid{1}, 1, stack_));
  EXPECT_THAT(StackLog(memory_).find(Pid{1}, 1), ElementsAre(11, 12, 13));
}

}  // namespace
}  // namespace ddprof
