// Stacks that are deeper than their copy: what is believed, and what is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "unwind/unwinder_scene.hpp"

namespace ddprof {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t kCallSite = kProgramStart + 0x110;
constexpr std::uint64_t kOtherCallSite = kProgramStart + 0x120;
constexpr std::uint64_t kRoot = kProgramStart + 0x301;
constexpr std::size_t kWordsPerFrame = 4;

// The memory of the target as it is when it is read.
class FakeMemory final : public MemoryReader {
 public:
  explicit FakeMemory(const std::vector<std::uint64_t>& stack) : stack_(stack) {}

  std::size_t read(Address address, std::span<std::byte> into) override {
    reads.push_back(address);
    const auto bytes = std::as_bytes(std::span(stack_));
    const std::uint64_t offset = address.value - UnwindScene::kStackStart;
    if (is_gone || offset >= bytes.size()) return 0;
    const std::size_t count = std::min<std::size_t>(into.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, into.begin());
    const std::uint64_t lost = changed_slot - address.value;
    if (reads.size() > reads_before_change && changed_slot >= address.value && lost + 8 <= count)
      std::memcpy(into.data() + lost, &kOtherCallSite, 8);
    return count;
  }
  [[nodiscard]] Nanoseconds now() const override { return time; }

  std::vector<Address> reads;
  Nanoseconds time{};
  bool is_gone = false;
  std::uint64_t changed_slot = 0;  // this word is another one by now: the thread has returned through it
  std::size_t reads_before_change = 0;

 private:
  const std::vector<std::uint64_t>& stack_;
};

// A function that calls itself `depth` times under the root.
class UnwinderDeep : public testing::Test {
 protected:
  UnwinderDeep() : memory_(scene_.stack) {
    scene_.add_module(kProgramStart, kProgram, {{0x100, sp_rule(kWordsPerFrame * 8)}, {0x300, kEndRule}});
    scene_.registers.pc = kProgramStart + 0x100;
    recurse(20);
  }

  void recurse(std::size_t depth) {
    scene_.stack.assign(depth * kWordsPerFrame, 0);
    for (std::size_t i = 1; i <= depth; ++i) scene_.stack[i * kWordsPerFrame - 1] = kCallSite;
    scene_.stack.back() = kRoot;
    frames_ = depth + 1;
  }
  // The word that holds the return address of the n-th frame from the leaf.
  std::uint64_t& return_of(std::size_t frame) { return scene_.stack[(frame + 1) * kWordsPerFrame - 1]; }

  // By the time of the read the thread has returned through the outermost step that the copy of five frames
  // holds.
  void leave_junction() { memory_.changed_slot = scene_.address_of(5 * kWordsPerFrame - 1); }

  // A sample whose copy holds `copied` frames, at `time`, unwound 10 later.
  const Stack& sample(std::size_t copied, int time, MemoryReader* live) {
    memory_.time = nanoseconds{time + 10};
    return scene_.unwind(scene_.copy_of(copied * kWordsPerFrame, nanoseconds{time}), &outer_, live);
  }

  UnwindScene scene_;
  FakeMemory memory_;
  OuterFrames outer_;
  std::size_t frames_ = 0;
};

TEST_F(UnwinderDeep, IsCompleteAtOnceWhenLiveMemoryStillHoldsTheEndOfTheCopy) {
  const Stack& stack = sample(5, 100, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), frames_);
  EXPECT_EQ(stack.outer_frames, frames_ - 6);
}

TEST_F(UnwinderDeep, ACopyMayEndAtAPageThatWasNeverTouched) {
  StackCopy copy = scene_.copy_of(5 * kWordsPerFrame);
  copy.is_truncated = false;
  EXPECT_EQ(scene_.unwind(copy).reason, StopReason::bad_memory);
  const Stack& stack = scene_.unwind(copy, &outer_, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), frames_);
  memory_.is_gone = true;
  EXPECT_EQ(scene_.unwind(copy, &outer_, &memory_).reason, StopReason::bad_memory);
}

TEST_F(UnwinderDeep, WithoutThatAFirstLiveReadIsOnlyACandidate) {
  leave_junction();
  const Stack& stack = sample(5, 100, &memory_);
  EXPECT_EQ(stack.reason, StopReason::truncated_copy);
  EXPECT_EQ(stack.frames.size(), 6U);
  EXPECT_EQ(stack.outer_frames, 0U);
  EXPECT_EQ(stack.stop_file, kProgram);
  EXPECT_LE(memory_.reads.size(), 2U);
}

TEST_F(UnwinderDeep, EachOfTheLastEightStepsOfTheCopyMustStillBeThere) {
  for (std::size_t frame = 0; frame < 12; ++frame) {
    outer_ = {};
    memory_.changed_slot = scene_.address_of((frame + 1) * kWordsPerFrame - 1);
    const StopReason expected = frame < 4 ? StopReason::complete : StopReason::truncated_copy;
    EXPECT_EQ(sample(12, 100, &memory_).reason, expected) << frame;
  }
}

TEST_F(UnwinderDeep, ACopyWithoutAnyStepConfirmsNothing) {
  const Stack& stack = sample(0, 100, &memory_);
  EXPECT_EQ(stack.reason, StopReason::truncated_copy);
  EXPECT_EQ(stack.frames.size(), 1U);
}

TEST_F(UnwinderDeep, DoesNotBelieveMemoryThatTheThreadLeftWhileItWasRead) {
  recurse(2000);
  memory_.changed_slot = scene_.address_of(100 * kWordsPerFrame - 1);
  memory_.reads_before_change = 2;
  const Stack& stack = sample(100, 100, &memory_);
  EXPECT_GT(memory_.reads.size(), 2U);
  EXPECT_EQ(stack.reason, StopReason::truncated_copy);
  EXPECT_EQ(stack.frames.size(), 101U);
}

TEST_F(UnwinderDeep, SaysThatTheCopyWasTooShortWhenWhatWasReadLaterLeadsNowhere) {
  return_of(10) = 0x1234;
  EXPECT_EQ(sample(5, 100, &memory_).reason, StopReason::truncated_copy);
}

TEST_F(UnwinderDeep, IsCompleteWhenLiveMemoryStillHoldsWhatWasSeenBeforeTheSample) {
  leave_junction();
  sample(5, 100, &memory_);
  const Stack& stack = sample(5, 200, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), frames_);
  EXPECT_EQ(stack.outer_frames, frames_ - 6);
}

TEST_F(UnwinderDeep, DoesNotBelieveWhatWasReadAfterTheSampleWasTaken) {
  leave_junction();
  // Two samples of one batch: both are older than the read that the first one caused.
  sample(5, 100, &memory_);
  EXPECT_EQ(sample(5, 105, &memory_).reason, StopReason::truncated_copy);
  // The third is younger than that read.
  EXPECT_EQ(sample(5, 111, &memory_).reason, StopReason::complete);
}

TEST_F(UnwinderDeep, BelievesNothingLiveWhenOneOuterFrameHasChanged) {
  leave_junction();
  sample(5, 100, &memory_);
  return_of(15) = kOtherCallSite;
  const Stack& stack = sample(5, 200, &memory_);
  EXPECT_EQ(stack.reason, StopReason::truncated_copy);
  EXPECT_EQ(stack.frames.size(), 6U);
  EXPECT_EQ(sample(5, 300, &memory_).reason, StopReason::complete);  // the new chain is confirmed by then
}

TEST_F(UnwinderDeep, ConfirmsLiveMemoryByAnEarlierCopyThatReachedFurther) {
  sample(20, 100, nullptr);
  const Stack& stack = sample(3, 200, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), frames_);
}

TEST_F(UnwinderDeep, WithoutLiveMemoryAppendsTheKnownCallersOfAFrameThatIsStillThere) {
  sample(20, 100, nullptr);
  const Stack& stack = sample(3, 200, nullptr);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), frames_);
  EXPECT_EQ(stack.outer_frames, frames_ - 4);
  EXPECT_EQ(stack.frames.back().address, 0x300U);
}

TEST_F(UnwinderDeep, WithoutLiveMemoryNeedsTheSameStepInTheCopy) {
  sample(20, 100, nullptr);
  return_of(2) = kOtherCallSite;  // the outermost step inside of the copy
  EXPECT_EQ(sample(3, 200, nullptr).reason, StopReason::truncated_copy);
  EXPECT_EQ(scene_.result.frames.size(), 4U);
}

TEST_F(UnwinderDeep, FallsBackOnKnownCallersWhenTheProcessIsGone) {
  sample(20, 100, nullptr);
  memory_.is_gone = true;
  EXPECT_EQ(sample(3, 200, &memory_).reason, StopReason::complete);
}

TEST_F(UnwinderDeep, DoesNotBelieveFramesThatTheThreadWasSeenToHaveLeft) {
  sample(20, 100, nullptr);
  // A sample near the root: the thread has returned from all that was known below.
  const Registers deep = scene_.registers;
  scene_.registers.sp = scene_.address_of(18 * kWordsPerFrame);
  const StackCopy near_root{Address{scene_.registers.sp},
                            std::as_bytes(std::span(scene_.stack)).subspan(18 * kWordsPerFrame * 8), false,
                            nanoseconds{200}};
  EXPECT_EQ(scene_.unwind(near_root, &outer_, nullptr).reason, StopReason::complete);
  // It has called down again, and the same words lie in the copy.
  scene_.registers = deep;
  EXPECT_EQ(sample(3, 300, nullptr).reason, StopReason::truncated_copy);
}

TEST_F(UnwinderDeep, NeverReadsLiveMemoryForStacksThatFit) {
  scene_.unwind(scene_.copy(), &outer_, &memory_);
  EXPECT_EQ(scene_.result.reason, StopReason::complete);
  EXPECT_TRUE(memory_.reads.empty());
}

TEST_F(UnwinderDeep, NeverReadsLiveMemoryThatItCouldNotConfirm) {
  const StackCopy copy = scene_.copy_of(5 * kWordsPerFrame, nanoseconds{100});
  EXPECT_EQ(scene_.unwind(copy, nullptr, &memory_).reason, StopReason::truncated_copy);
  EXPECT_TRUE(memory_.reads.empty());
}

TEST_F(UnwinderDeep, CompletesTwoThousandFramesWithFewReads) {
  recurse(2000);
  sample(100, 100, &memory_);
  memory_.reads.clear();
  const Stack& stack = sample(100, 200, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), 2001U);
  EXPECT_LE(memory_.reads.size(), 5U);  // 60 KB above the copy in windows of 16 KB
}

TEST_F(UnwinderDeep, BelievesBothEndsOfMoreFramesThanItKeeps) {
  recurse(5000);
  const Stack& stack = sample(100, 100, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), Unwinder::kMaxFrames);
  EXPECT_EQ(stack.inner_frames, Unwinder::kMaxFrames / 2);
  EXPECT_EQ(stack.frames.back().address, 0x300U);
  recurse(20000);  // more than are walked
  outer_ = {};
  EXPECT_EQ(sample(100, 100, &memory_).reason, StopReason::depth_limit);
  EXPECT_EQ(stack.frames.size(), Unwinder::kMaxFrames);
}

TEST_F(UnwinderDeep, FollowsADeepStackThatGoesOnGrowingDownward) {
  sample(5, 100, &memory_);
  sample(5, 200, &memory_);
  // The thread calls deeper: its stack pointer moves down, outer slots stay where they are.
  const std::vector<std::uint64_t> outer_words = scene_.stack;
  scene_.registers.sp -= 2 * kWordsPerFrame * 8;
  std::vector<std::uint64_t> words(2 * kWordsPerFrame, 0);
  words[3] = words[7] = kCallSite;
  words.insert(words.end(), outer_words.begin(), outer_words.begin() + 3 * kWordsPerFrame);
  const StackCopy copy{Address{scene_.registers.sp}, std::as_bytes(std::span(words)), true, nanoseconds{300}};
  memory_.time = nanoseconds{310};
  const Stack& stack = scene_.unwind(copy, &outer_, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  EXPECT_EQ(stack.frames.size(), frames_ + 2);
}

}  // namespace
}  // namespace ddprof
