#include "unwind/outer_frames.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

using std::chrono::nanoseconds;

OuterFrame step(std::uint64_t slot, std::uint64_t return_address, int seen_at = 0) {
  return {slot, return_address, slot + 8, 0, nanoseconds{seen_at}, false, false};
}

TEST(OuterFrames, GivesTheCallersOfAStepThatItKnows) {
  OuterFrames outer;
  std::vector<OuterFrame> walk{step(0x100, 1), step(0x200, 2), step(0x300, 3)};
  outer.record(walk, true);
  const auto callers = outer.callers_of(step(0x100, 1));
  ASSERT_EQ(callers.outermost_first.size(), 2U);
  EXPECT_EQ(callers.outermost_first.front().return_address, 3U);
  EXPECT_TRUE(callers.reach_root);
  EXPECT_TRUE(outer.callers_of(step(0x100, 9)).outermost_first.empty());
  EXPECT_FALSE(outer.callers_of(step(0x100, 9)).reach_root);
  EXPECT_TRUE(outer.callers_of(step(0x108, 1)).outermost_first.empty());
}

TEST(OuterFrames, ForgetsWhatTheThreadHasReturnedFrom) {
  OuterFrames outer;
  std::vector<OuterFrame> walk{step(0x100, 1), step(0x200, 2), step(0x300, 3)};
  outer.record(walk, true);
  outer.forget_below(0x201);
  EXPECT_EQ(outer.size(), 1U);
  EXPECT_EQ(outer.find(0x200), nullptr);
  EXPECT_NE(outer.find(0x300), nullptr);
}

TEST(OuterFrames, KeepsOuterFramesThatAShorterWalkDidNotReach) {
  OuterFrames outer;
  std::vector<OuterFrame> full{step(0x200, 2), step(0x300, 3), step(0x400, 4)};
  outer.record(full, true);
  std::vector<OuterFrame> cut{step(0x100, 1), step(0x200, 2), step(0x300, 3)};
  outer.record(cut, false);
  const auto callers = outer.callers_of(step(0x100, 1));
  EXPECT_EQ(callers.outermost_first.size(), 3U);
  EXPECT_TRUE(callers.reach_root);
}

TEST(OuterFrames, DoesNotLinkAWalkToOuterFramesOfAnotherPath) {
  OuterFrames outer;
  std::vector<OuterFrame> full{step(0x200, 2), step(0x300, 3), step(0x400, 4)};
  outer.record(full, true);
  std::vector<OuterFrame> other{step(0x100, 1),
                                step(0x300, 33)};  // slot 0x300 has changed: it was returned through
  outer.record(other, false);
  EXPECT_EQ(outer.callers_of(step(0x100, 1)).outermost_first.size(), 1U);
  EXPECT_FALSE(outer.callers_of(step(0x100, 1)).reach_root);
  EXPECT_NE(outer.find(0x400), nullptr);  // still of use to confirm a live read
}

TEST(OuterFrames, AFullWalkReplacesEverything) {
  OuterFrames outer;
  std::vector<OuterFrame> first{step(0x200, 2), step(0x900, 9)};
  outer.record(first, true);
  std::vector<OuterFrame> second{step(0x100, 1), step(0x300, 3)};
  outer.record(second, true);
  EXPECT_EQ(outer.size(), 2U);
  EXPECT_EQ(outer.find(0x900), nullptr);
}

TEST(OuterFrames, RemembersSinceWhenAStepHasBeenThere) {
  OuterFrames outer;
  std::vector<OuterFrame> first{step(0x100, 1, 10), step(0x200, 2, 10)};
  outer.record(first, true);
  std::vector<OuterFrame> second{step(0x100, 7, 20), step(0x200, 2, 20)};
  outer.record(second, true);
  EXPECT_EQ(outer.find(0x100)->seen_at, nanoseconds{20});
  EXPECT_EQ(outer.find(0x200)->seen_at, nanoseconds{10});
}

TEST(OuterFrames, KeepsTheOutermostWithinItsBudget) {
  OuterFrames outer;
  std::vector<OuterFrame> walk;
  for (std::size_t i = 0; i < OuterFrames::kMaxFrames + 100; ++i) walk.push_back(step(i * 8, i));
  outer.record(walk, true);
  EXPECT_EQ(outer.size(), OuterFrames::kMaxFrames);
  EXPECT_NE(outer.find((OuterFrames::kMaxFrames + 99) * 8), nullptr);
  EXPECT_EQ(outer.find(0), nullptr);
}

}  // namespace
}  // namespace ddprof
