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

// A function whose frame is larger than the copy, called by one that the root has called.
class UnwinderLargeFrame : public testing::Test {
 protected:
  static constexpr std::uint64_t kLarge = 0x100;
  static constexpr std::uint64_t kNeighbour = 0x180;
  static constexpr std::uint64_t kCaller = 0x200;
  static constexpr std::uint64_t kReturn = kProgramStart + kCaller + 0x20;
  static constexpr std::size_t kLargeWords = 100;
  static constexpr std::size_t kCallerWords = 4;

  UnwinderLargeFrame() : memory_(scene_.stack) {
    scene_.add_module(kProgramStart, kProgram,
                      {{kLarge, sp_rule(kLargeWords * 8)},
                       {kLarge + 0x40, kGapRule},
                       {kNeighbour, sp_rule(16)},
                       {kNeighbour + 0x40, kGapRule},
                       {kCaller, sp_rule(kCallerWords * 8)},
                       {kCaller + 0x40, kGapRule},
                       {0x300, kEndRule}},
                      code_);
    scene_.registers.pc = kProgramStart + kLarge + 0x10;
    scene_.stack.assign(kLargeWords + kCallerWords, 0);
    scene_.stack[kLargeWords - 1] = kReturn;
    scene_.stack.back() = kRoot;
  }

  void call(std::uint64_t function) {
    const auto distance = static_cast<std::int32_t>(function - (kCaller + 0x20));
    code_[kCaller + 0x1b] = std::byte{0xe8};
    std::memcpy(&code_[kCaller + 0x1c], &distance, sizeof distance);
  }
  void call_register() {
    code_[kCaller + 0x1e] = std::byte{0xff};
    code_[kCaller + 0x1f] = std::byte{0xd0};
  }
  const Stack& sample(std::size_t words, int time) {
    memory_.time = nanoseconds{time + 10};
    return scene_.unwind(scene_.copy_of(words, nanoseconds{time}), &outer_, &memory_);
  }

  static constexpr ddprof_unwind_rule kGapRule{DDPROF_CFA_GAP, 0, 0, 0};
  std::array<std::byte, UnwindScene::kModuleBytes> code_{};
  UnwindScene scene_;
  FakeMemory memory_;
  OuterFrames outer_;
};

TEST_F(UnwinderLargeFrame, IsLeftWhereACallOfItsFunctionIs) {
  call(kLarge);
  const Stack& stack = sample(kLargeWords - 10, 100);
  EXPECT_EQ(stack.reason, StopReason::complete);
  ASSERT_EQ(stack.frames.size(), 3U);
  EXPECT_EQ(stack.frames[1].address, kCaller + 0x1f);
  EXPECT_EQ(stack.outer_frames, 2U);
}

TEST_F(UnwinderLargeFrame, IsNotLeftToTheCallerOfAnotherFunction) {
  for (const std::uint64_t other : {kNeighbour, kLarge + 0x20, kLarge - 0x10, kCaller}) {
    call(other);
    outer_ = {};
    EXPECT_EQ(sample(kLargeWords - 10, 100).reason, StopReason::truncated_copy) << other;
    EXPECT_EQ(scene_.result.frames.size(), 1U);
  }
}

TEST_F(UnwinderLargeFrame, BehindAnIndirectCallTheRestMustHaveBeenThereBefore) {
  call_register();
  EXPECT_EQ(sample(kLargeWords - 10, 100).reason, StopReason::truncated_copy);
  // Meanwhile the thread was in the caller, and called again.
  const Registers inside = scene_.registers;
  scene_.registers.pc = kReturn;
  scene_.registers.sp = scene_.address_of(kLargeWords);
  const StackCopy near_root{Address{scene_.registers.sp},
                            std::as_bytes(std::span(scene_.stack)).subspan(kLargeWords * 8), false,
                            nanoseconds{200}};
  EXPECT_EQ(scene_.unwind(near_root, &outer_, &memory_).reason, StopReason::complete);
  scene_.registers = inside;
  EXPECT_EQ(sample(kLargeWords - 10, 300).reason, StopReason::complete);
}

TEST_F(UnwinderLargeFrame, MustStillBeThereWhenAllIsRead) {
  call(kLarge);
  memory_.changed_slot = scene_.address_of(kLargeWords - 1);
  memory_.reads_before_change = 1;
  EXPECT_EQ(sample(kLargeWords - 10, 100).reason, StopReason::truncated_copy);
  EXPECT_GT(memory_.reads.size(), 1U);
}

TEST_F(UnwinderLargeFrame, InTheMiddleOfAStackNeedsNoStepBelowIt) {
  call(kLarge);
  // The neighbour was called from the large frame, and has returned by now.
  scene_.stack.insert(scene_.stack.begin(), {0, kProgramStart + kLarge + 0x10});
  scene_.registers.pc = kProgramStart + kNeighbour;
  code_[kLarge + 0x0e] = std::byte{0xff};
  code_[kLarge + 0x0f] = std::byte{0xd0};
  memory_.changed_slot = scene_.address_of(1);
  EXPECT_EQ(sample(50, 100).reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 4U);
}

TEST_F(UnwinderLargeFrame, ASmallOneNeedsMore) {
  call(kLarge);
  // Many frames inside of the copy, which takes up more than the one that crosses its end.
  constexpr std::size_t kInnerFrames = 200;
  for (std::size_t i = 0; i < kInnerFrames; ++i) {
    const std::uint64_t function = i == 0 ? kLarge : kNeighbour;
    scene_.stack.insert(scene_.stack.begin(), {0, kProgramStart + function + 0x10});
  }
  scene_.registers.pc = kProgramStart + kNeighbour;
  const std::size_t copied = kInnerFrames * 2 + 50;
  EXPECT_EQ(sample(copied, 100).reason, StopReason::complete);
  outer_ = {};
  memory_.changed_slot = scene_.address_of(kInnerFrames * 2 - 1);
  EXPECT_EQ(sample(copied, 100).reason, StopReason::truncated_copy);
  EXPECT_EQ(scene_.result.frames.size(), kInnerFrames + 1);
}

// A function on the system stack of Go's runtime, for a goroutine that waits on another stack: the scene's
// stack is the system stack and, further up, that of the goroutine.
class UnwinderGoroutine : public testing::Test {
 protected:
  static constexpr std::uint64_t kSwitch = 0x200;
  static constexpr std::uint64_t kAsked = 0x280;
  static constexpr std::uint64_t kReturn = kProgramStart + kAsked + 0x20;
  static constexpr std::size_t kSystemWords = 8;
  static constexpr std::size_t kGoroutine = 2000;  // where its frame begins
  static constexpr std::size_t kAskedWords = 6;    // of the frame, with the return address

  UnwinderGoroutine() : memory_(scene_.stack) {
    scene_.add_module(kProgramStart, kProgram,
                      {{0x100, sp_rule(16, -16)},
                       {0x140, kGapRule},
                       {kSwitch, {DDPROF_CFA_GO_SWITCH, 0, 0, 0}},
                       {kSwitch + 0x40, kGapRule},
                       {kAsked, sp_rule(kAskedWords * 8, -16)},
                       {kAsked + 0x40, kGapRule},
                       {0x300, kEndRule}},
                      code_);
    scene_.registers.pc = kProgramStart + 0x110;
    scene_.stack.assign(kGoroutine + kAskedWords, 0);
    scene_.stack[0] = scene_.address_of(kGoroutine + kAskedWords - 2);  // the frame pointer of who asked
    scene_.stack[1] = kProgramStart + kSwitch + 0x20;
    scene_.stack[kGoroutine - 1] = kReturn;
    scene_.stack.back() = kRoot;
    call(kSwitch);
  }

  void call(std::uint64_t function) {
    const auto distance = static_cast<std::int32_t>(function - (kAsked + 0x20));
    code_[kAsked + 0x1b] = std::byte{0xe8};
    std::memcpy(&code_[kAsked + 0x1c], &distance, sizeof distance);
  }
  const Stack& sample(OuterFrames* outer, MemoryReader* live) {
    memory_.time = nanoseconds{110};
    StackCopy copy = scene_.copy_of(kSystemWords, nanoseconds{100});
    copy.is_truncated = false;
    return scene_.unwind(copy, outer, live);
  }
  void expect_end_at_switch() {
    EXPECT_EQ(sample(&outer_, &memory_).reason, StopReason::complete);
    EXPECT_EQ(scene_.result.frames.size(), 2U);
    EXPECT_TRUE(scene_.result.is_late);
  }

  static constexpr ddprof_unwind_rule kGapRule{DDPROF_CFA_GAP, 0, 0, 0};
  std::array<std::byte, UnwindScene::kModuleBytes> code_{};
  UnwindScene scene_;
  FakeMemory memory_;
  OuterFrames outer_;
};

TEST_F(UnwinderGoroutine, GoesOnWithTheOneThatAsked) {
  const Stack& stack = sample(&outer_, &memory_);
  EXPECT_EQ(stack.reason, StopReason::complete);
  ASSERT_EQ(stack.frames.size(), 4U);
  EXPECT_EQ(stack.frames[2].address, kAsked + 0x1f);
  EXPECT_EQ(stack.frames[3].address, 0x300U);
  EXPECT_EQ(stack.outer_frames, 2U);
  EXPECT_FALSE(stack.is_late);
}

TEST_F(UnwinderGoroutine, NeedsLiveMemory) {
  EXPECT_EQ(sample(nullptr, &memory_).reason, StopReason::truncated_copy);  // and is asked again with it
  EXPECT_EQ(sample(&outer_, nullptr).reason, StopReason::truncated_copy);
  memory_.is_gone = true;
  expect_end_at_switch();
}

TEST_F(UnwinderGoroutine, EndsWithTheSystemStackOnceItHasMovedOn) {
  scene_.stack[kGoroutine - 1] = kOtherCallSite;
  expect_end_at_switch();
  scene_.stack[kGoroutine - 1] = kReturn;
  memory_.changed_slot = scene_.address_of(kGoroutine - 1);  // while it was read
  memory_.reads_before_change = 1;
  expect_end_at_switch();
}

TEST_F(UnwinderGoroutine, OnlyACallOfTheSwitchAtTheRightDistanceCounts) {
  call(0x100);
  expect_end_at_switch();
  call(kSwitch);
  std::swap(scene_.stack[kGoroutine - 1], scene_.stack[kGoroutine - 2]);
  expect_end_at_switch();
}

TEST_F(UnwinderGoroutine, WhatLeadsNowhereIsNotBelieved) {
  scene_.stack.back() = 0x1234;
  expect_end_at_switch();
}

TEST_F(UnwinderGoroutine, WithoutAFramePointerTheSystemStackIsAll) {
  scene_.stack[0] = 0;
  EXPECT_EQ(sample(&outer_, &memory_).reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 2U);
  EXPECT_FALSE(scene_.result.is_late);
  EXPECT_TRUE(memory_.reads.empty());
}

}  // namespace
}  // namespace ddprof
