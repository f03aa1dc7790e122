// Stacks of 32-bit programs: words of 4 bytes, and the numbers of i386.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "unwind/unwinder_code.hpp"
#include "unwind/unwinder_scene.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kStack386 = 0xffff0000;
constexpr ddprof_unwind_rule kFramePointerRule386{DDPROF_CFA_FP, DDPROF_FP_AT_CFA, -8, 8};

// The stack is made of 32-bit words, the code of calls.
class Unwinder386 : public testing::Test {
 protected:
  Unwinder386() : code_(UnwindScene::kModuleBytes, std::byte{0x90}) { scene_.registers.sp = kStack386; }

  void push(std::initializer_list<std::uint64_t> words) {
    for (const std::uint64_t word : words) stack_.push_back(static_cast<std::uint32_t>(word));
  }
  static std::uint64_t slot(std::size_t index) { return kStack386 + index * 4; }
  void put(std::uint64_t offset, std::initializer_list<unsigned char> bytes) {
    for (const unsigned char byte : bytes) code_[offset++] = std::byte{byte};
  }
  // The return address behind a call that ends there.
  std::uint64_t behind_call(std::uint64_t offset) {
    put(offset - 5, {0xe8, 0, 0, 0, 0});
    return kProgramStart + offset;
  }
  std::vector<std::uint64_t> unwind() {
    const StackCopy copy{
        .start = Address{kStack386}, .bytes = std::as_bytes(std::span(stack_)), .is_32_bit = true};
    std::vector<std::uint64_t> addresses;
    for (const Frame& frame : scene_.unwind(copy).frames) addresses.push_back(frame.address);
    return addresses;
  }

  UnwindScene scene_;
  std::vector<std::byte> code_;
  std::vector<std::uint32_t> stack_;
};

TEST_F(Unwinder386, FollowsRules) {
  scene_.add_module(kProgramStart, kProgram,
                    {{0x100, sp_rule(12)}, {0x200, kFramePointerRule386}, {0x300, kEndRule}}, code_);
  scene_.registers.pc = kProgramStart + 0x110;
  scene_.registers.fp = slot(4);
  push({0, 0, kProgramStart + 0x210, 0});
  push({0x77, kProgramStart + 0x310});  // where fp points to, at the end of the copy
  EXPECT_THAT(unwind(), ElementsAre(0x110, 0x20f, 0x30f));
  EXPECT_EQ(scene_.result.reason, StopReason::complete);
}

TEST_F(Unwinder386, FollowsFramePointersThatLeadToBehindACall) {
  scene_.add_module_without_table(kProgramStart, kProgram, code_);
  scene_.registers.pc = kProgramStart + 0x100;
  scene_.registers.fp = slot(1);
  push({0, slot(4), behind_call(0x200), 0});
  push({0, behind_call(0x300)});
  EXPECT_THAT(unwind(), ElementsAre(0x100, 0x1ff, 0x2ff));
  EXPECT_EQ(scene_.result.reason, StopReason::complete) << "a chain that ends with 0";
}

TEST_F(Unwinder386, BelievesNoFramePointerThatLeadsElsewhere) {
  scene_.add_module_without_table(kProgramStart, kProgram, code_);
  scene_.registers.pc = kProgramStart + 0x100;
  push({slot(2), kProgramStart + 0x200, 0, 0});  // no call is there
  for (const std::uint64_t fp : {slot(0), slot(0) - 4, slot(0) + 2, slot(64)}) {
    scene_.registers.fp = fp;
    EXPECT_THAT(unwind(), ElementsAre(0x100));
    EXPECT_EQ(scene_.result.reason, StopReason::no_unwind_info);
  }
}

TEST_F(Unwinder386, KnowsWherePrologueAndEpilogueAre) {
  put(0x100, {0x55});                                      // push %ebp
  put(0x110, {0x89, 0xe5});                                // mov %esp,%ebp
  put(0x120, {0x83, 0xc4, 0x04, 0x5b, 0x5d, 0xc3});        // add $4,%esp; pop %ebx; pop %ebp; ret
  put(0x130, {0x8b, 0x1c, 0x24, 0xc3});                    // mov (%esp),%ebx; ret
  put(0x140, {0xe8, 0, 0, 0, 0, 0x05, 0, 0, 0, 0, 0x55});  // call thunk; add $table,%eax; push %ebp
  put(0x150, {0xff, 0xa3, 0, 0, 0, 0});                    // jmp *slot(%ebx)
  scene_.add_module_without_table(kProgramStart, kProgram, code_);
  const std::uint64_t caller = behind_call(0x200);
  const auto expect = [&](std::uint64_t pc, std::initializer_list<std::uint64_t> stack) {
    stack_.clear();
    push(stack);
    scene_.map.clear();
    scene_.add_module_without_table(kProgramStart, kProgram, code_);
    scene_.registers.pc = kProgramStart + pc;
    scene_.registers.fp = 0;
    const auto frames = unwind();
    ASSERT_GE(frames.size(), 2U) << std::hex << pc;
    EXPECT_EQ(frames[1], 0x1ffU) << std::hex << pc;
  };
  expect(0x100, {caller});
  expect(0x110, {0, caller});
  expect(0x120, {1, 2, 0, caller});
  expect(0x130, {caller});
  expect(0x140, {caller});
  expect(0x150, {caller});
  // The thunk, called by a function that has no frame yet.
  expect(0x145, {caller});
  stack_.clear();
  push({kProgramStart + 0x145, caller});
  scene_.registers.pc = kProgramStart + 0x130;
  EXPECT_THAT(unwind(),
              testing::IsSupersetOf({std::uint64_t{0x130}, std::uint64_t{0x144}, std::uint64_t{0x1ff}}));
}

TEST_F(Unwinder386, RestoresWhatASignalInterrupted) {
  constexpr std::uint64_t kOld = 0x400;
  constexpr std::uint64_t kNew = 0x500;
  put(kOld, {0x58, 0xb8, 119, 0, 0, 0, 0xcd, 0x80});
  put(kNew, {0xb8, 173, 0, 0, 0, 0xcd, 0x80});
  scene_.add_module(kProgramStart, kProgram, {{0x100, sp_rule(4)}, {0x300, kEndRule}, {kOld, {}}}, code_);
  // sigcontext: gs fs es ds edi esi ebp esp ebx edx ecx eax trap error eip.
  const std::array<std::uint64_t, 15> context = {
      0, 0, 0, 0, 7, 6, 0, kStack386 + 400, 3, 2, 1, 0, 0, 0, kProgramStart + 0x300};
  const auto unwind_at = [&](std::uint64_t pc, std::vector<std::uint64_t> words, std::size_t bytes_between) {
    stack_.clear();
    for (const std::uint64_t word : words) push({word});
    stack_.resize(stack_.size() + bytes_between / 4);
    for (const std::uint64_t word : context) push({word});
    stack_.resize(200);
    scene_.registers.pc = kProgramStart + pc;
    return unwind();
  };
  // A handler returns to the first byte of the trampoline; above it is the number of the signal.
  EXPECT_THAT(unwind_at(0x110, {kProgramStart + kOld, 14}, 0), ElementsAre(0x110, kOld, 0x300));
  EXPECT_EQ(scene_.result.reason, StopReason::complete);
  // And two pointers, siginfo, and the ucontext.
  EXPECT_THAT(unwind_at(0x110, {kProgramStart + kNew, 14, 0, 0}, 128 + 20), ElementsAre(0x110, kNew, 0x300));
  // The trampolines themselves, before and behind their instructions.
  EXPECT_THAT(unwind_at(kOld, {14}, 0), ElementsAre(kOld, 0x300));
  for (const std::uint64_t done : {1U, 6U, 8U})
    EXPECT_THAT(unwind_at(kOld + done, {}, 0), ElementsAre(kOld + done, 0x300)) << done;
  for (const std::uint64_t done : {0U, 5U, 7U})
    EXPECT_THAT(unwind_at(kNew + done, {14, 0, 0}, 128 + 20), ElementsAre(kNew + done, 0x300)) << done;
}

TEST_F(Unwinder386, FindsTheCallerOfALazyBindingStub) {
  const ddprof_unwind_rule stub{DDPROF_CFA_PLT, DDPROF_FP_SAME, 0, 11};
  scene_.add_module(kProgramStart, kProgram, {{0x100, stub}, {0x200, kEndRule}}, code_);
  push({7, kProgramStart + 0x210});
  scene_.registers.pc = kProgramStart + 0x10b;  // the index is pushed
  EXPECT_THAT(unwind(), ElementsAre(0x10b, 0x20f));
  stack_ = {static_cast<std::uint32_t>(kProgramStart + 0x210)};
  scene_.registers.pc = kProgramStart + 0x106;
  EXPECT_THAT(unwind(), ElementsAre(0x106, 0x20f));
}

TEST_F(Unwinder386, CompletesADeepStackFromMemory) {
  class Words final : public MemoryReader {
   public:
    std::size_t read(Address address, std::span<std::byte> into) override {
      const std::size_t offset = address.value - kStack386;
      const auto bytes = std::as_bytes(std::span(words));
      if (offset >= bytes.size()) return 0;
      const auto part = bytes.subspan(offset, std::min(into.size(), bytes.size() - offset));
      std::memcpy(into.data(), part.data(), part.size());
      return part.size();
    }
    [[nodiscard]] Nanoseconds now() const override { return Nanoseconds{5}; }
    std::vector<std::uint32_t> words;
  } live;
  scene_.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x300, kEndRule}}, code_);
  scene_.registers.pc = kProgramStart + 0x110;
  push({0, kProgramStart + 0x110, 0, kProgramStart + 0x110, 0, kProgramStart + 0x310});
  live.words = stack_;
  const StackCopy copy{.start = Address{kStack386},
                       .bytes = std::as_bytes(std::span(stack_).first(2)),
                       .is_truncated = true,
                       .is_32_bit = true};
  OuterFrames outer;
  EXPECT_EQ(scene_.unwind(copy, &outer, &live).frames.size(), 4U);
  EXPECT_EQ(scene_.result.reason, StopReason::complete);
  EXPECT_EQ(scene_.result.outer_frames, 2U);
}

}  // namespace
}  // namespace ddprof
