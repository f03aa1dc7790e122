// Callers that find their CFA by a register that is neither the stack nor the frame pointer.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "unwind/unwinder_scene.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kLeafPushed = kProgramStart + 0x102;  // in a function that has pushed rbx
constexpr std::uint64_t kLeafPlain = kProgramStart + 0x180;   // in one that does not touch it
constexpr std::uint64_t kInResolver = kProgramStart + 0x205;  // behind a call, CFA = rbx + 24
constexpr std::uint64_t kInMiddle = kProgramStart + 0x285;    // behind a call, in one that saves rbx by rbp
constexpr std::uint64_t kInRoot = kProgramStart + 0x305;      // behind a call, the root
constexpr ddprof_unwind_rule kByRbx{DDPROF_CFA_REGISTER + 3, DDPROF_FP_SAME, 0, 24};

class UnwinderRegister : public testing::Test {
 protected:
  UnwinderRegister() : code_(0x400, std::byte{0x90}) {
    write(0x100, {0x53, 0x90, 0x90, 0x5b, 0xc3});                    // push %rbx; nop; nop; pop %rbx; ret
    write(0x180, {0x90, 0xc3});                                      // nop; ret
    write(0x200, {0xe8, 0, 0, 0, 0, 0x90, 0x48, 0x89, 0xdc, 0x5b});  // call; nop; mov %rbx,%rsp; pop %rbx
    write(0x20a, {0x48, 0x83, 0xc4, 0x10, 0xc3});                    // add $16,%rsp; ret
    write(0x280,
          {0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3});  // call; mov -8(%rbp),%rbx; leave; ret
    write(0x300, {0xe8, 0, 0, 0, 0});
    scene_.add_module(kProgramStart, kProgram,
                      {{0x100, sp_rule(8)},
                       {0x101, sp_rule(16)},
                       {0x104, sp_rule(8)},
                       {0x200, kByRbx},
                       {0x280, kFramePointerRule},
                       {0x300, kEndRule}},
                      code_);
    scene_.registers.by_dwarf_number[3] = 0x1234;
  }

  void write(std::size_t at, std::initializer_list<unsigned> bytes) {
    std::transform(bytes.begin(), bytes.end(), code_.begin() + static_cast<std::ptrdiff_t>(at),
                   [](unsigned byte) { return static_cast<std::byte>(byte); });
  }
  const Stack& unwind_from(std::uint64_t pc) {
    scene_.registers.pc = pc;
    return scene_.unwind();
  }

  std::vector<std::byte> code_;
  UnwindScene scene_;
};

TEST_F(UnwinderRegister, IsReadWhereACalledFunctionHasSavedIt) {
  // rbx, return; an unknown number of words; rbx, a word that was pushed, return
  scene_.push({scene_.address_of(5), kInResolver, 0, 0, 0, 0x99, 1, kInRoot});
  const Stack& stack = unwind_from(kLeafPushed);
  EXPECT_EQ(stack.reason, StopReason::complete);
  ASSERT_EQ(stack.frames.size(), 3U);
  EXPECT_EQ(stack.frames[1].address, 0x204U);
  EXPECT_EQ(stack.frames[2].address, 0x304U);
}

TEST_F(UnwinderRegister, StaysWhatItIsInAFunctionThatDoesNotTouchIt) {
  scene_.registers.by_dwarf_number[3] = scene_.address_of(3);
  scene_.push({kInResolver, 0, 0, 0x99, 1, kInRoot});
  EXPECT_EQ(unwind_from(kLeafPlain).reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 3U);
}

TEST_F(UnwinderRegister, IsFollowedThroughSeveralFrames) {
  scene_.registers.fp = scene_.address_of(4);
  scene_.registers.by_dwarf_number[3] = 0x5555;
  // the leaf returns to the middle, which has saved rbx below its rbp
  scene_.push({0x7777, kInMiddle, 0, scene_.address_of(7), 0, kInResolver, 0, 0x99, 1, kInRoot});
  EXPECT_EQ(unwind_from(kLeafPushed).reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 4U);
}

TEST_F(UnwinderRegister, MustLeadToBehindACall) {
  scene_.push({scene_.address_of(5), kInResolver, 0, 0, 0, 0x99, 1, kInRoot + 0x10});
  EXPECT_EQ(unwind_from(kLeafPushed).reason, StopReason::unsupported_rule);
  EXPECT_EQ(scene_.result.frames.size(), 2U);
  scene_.stack[7] = kInRoot;
  EXPECT_EQ(unwind_from(kLeafPushed).reason, StopReason::complete);
  scene_.stack[0] = scene_.address_of(500);  // outside of the copy
  EXPECT_EQ(unwind_from(kLeafPushed).reason, StopReason::unsupported_rule);
}

TEST_F(UnwinderRegister, IsUnknownWhereInstructionsAndTheTableContradictEachOther) {
  write(0x103, {0x5b, 0x5b, 0xc3});  // another pop
  scene_.push({scene_.address_of(5), kInResolver, 0, 0, 0, 0x99, 1, kInRoot});
  EXPECT_EQ(unwind_from(kLeafPushed).reason, StopReason::unsupported_rule);
}

TEST_F(UnwinderRegister, OfOneSampleSaysNothingOfTheNext) {
  OuterFrames outer;  // with it every walk notes its steps
  scene_.push({scene_.address_of(5), kInResolver, 0, 0, 0, 0x99, 1, kInRoot});
  scene_.registers.pc = kLeafPushed;
  EXPECT_EQ(scene_.unwind(scene_.copy(), &outer).reason, StopReason::complete);
  scene_.registers.pc = kProgramStart + 0x3f0;  // where no instructions are known to return
  scene_.map.clear();
  scene_.add_module(kProgramStart, kProgram, {{0x200, kByRbx}, {0x300, kEndRule}, {0x3f0, sp_rule(16)}});
  EXPECT_EQ(scene_.unwind(scene_.copy(), &outer).reason, StopReason::unsupported_rule);
}

TEST_F(UnwinderRegister, IsKnownInAFrameThatASignalInterrupted) {
  scene_.map.clear();
  scene_.add_module(
      kProgramStart, kProgram,
      {{0x101, sp_rule(16)}, {0x104, sp_rule(8)}, {0x200, kByRbx}, {0x300, kEndRule}, {0x3e0, kSignalRule}},
      code_);
  // A handler has returned to the trampoline; the ucontext has 40 bytes before its registers.
  scene_.push({0, 0, 0, 0, 0});
  std::vector<std::uint64_t> registers(17, 0);
  registers[15] = scene_.address_of(22);  // rsp
  registers[16] = kLeafPlain;
  registers[11] = scene_.address_of(25);  // rbx
  scene_.stack.insert(scene_.stack.end(), registers.begin(), registers.end());
  scene_.push({kInResolver, 0, 0, 0x99, 1, kInRoot});
  EXPECT_EQ(unwind_from(kProgramStart + 0x3e0).reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 4U);
}

}  // namespace
}  // namespace ddprof
