#include "unwind/unwinder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "unwind/unwinder_scene.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;

constexpr FileId kLibrary{2};
constexpr std::uint64_t kLibraryStart = 0x20000;

Frame frame(FileId file, std::uint64_t address) {
  return {FrameKind::user, StopReason::complete, Loss::none, file, address};
}

template <typename... Bytes>
std::array<std::byte, sizeof...(Bytes)> code(Bytes... bytes) {
  return {std::byte{static_cast<unsigned char>(bytes)}...};
}

TEST(Unwinder, FollowsStackPointerRulesAcrossModulesToTheRoot) {
  UnwindScene scene;
  scene.add_module(kLibraryStart, kLibrary, {{0x100, sp_rule(16)}});
  scene.add_module(kProgramStart, kProgram, {{0x200, sp_rule(24)}, {0x300, kEndRule}});
  scene.registers.pc = kLibraryStart + 0x100;
  scene.push({0, kProgramStart + 0x210, 0, 0, kProgramStart + 0x310});
  scene.unwind();
  EXPECT_THAT(scene.result.frames,
              ElementsAre(frame(kLibrary, 0x100), frame(kProgram, 0x20f), frame(kProgram, 0x30f)));
  EXPECT_EQ(scene.result.reason, StopReason::complete);
}

TEST(Unwinder, LooksUpCallersInsideOfTheirCallAndTheLeafExactly) {
  UnwindScene scene;
  // The leaf stands on the first byte of its row; the caller's return address is the first byte of the next
  // one.
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x200, sp_rule(16)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({kProgramStart + 0x300, 0, kProgramStart + 0x301});
  scene.unwind();
  EXPECT_THAT(scene.result.frames,
              ElementsAre(frame(kProgram, 0x100), frame(kProgram, 0x2ff), frame(kProgram, 0x300)));
}

TEST(Unwinder, FollowsFramePointerRulesAndRestoresTheSavedOnes) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, kFramePointerRule}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x120;
  scene.registers.fp = scene.address_of(2);
  scene.push({0, 0, scene.address_of(5), kProgramStart + 0x130, 0, 0, kProgramStart + 0x301});
  scene.unwind();
  EXPECT_THAT(scene.result.frames,
              ElementsAre(frame(kProgram, 0x120), frame(kProgram, 0x12f), frame(kProgram, 0x300)));
}

TEST(Unwinder, KeepsAFramePointerWhoseSlotIsAlreadyPopped) {
  UnwindScene scene;
  // At `ret` the CFI of some compilers still says that rbp is saved, two words below the CFA.
  scene.add_module(kProgramStart, kProgram,
                   {{0x100, sp_rule(8, -16)}, {0x200, kFramePointerRule}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.registers.fp = scene.address_of(1);
  scene.push({kProgramStart + 0x210, 0, kProgramStart + 0x301});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  EXPECT_EQ(scene.result.frames.size(), 3U);
}

TEST(Unwinder, FollowsRealignedFramesThroughTheirSavedArgumentPointer) {
  UnwindScene scene;
  // gcc's DRAP: CFA = *(rbp - 8), the caller's rbp at *rbp.
  const ddprof_unwind_rule drap{DDPROF_CFA_DEREF_FP, DDPROF_FP_AT_FP, 0, 0xfff8};
  scene.add_module(kProgramStart, kProgram, {{0x100, drap}, {0x200, kFramePointerRule}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.registers.fp = scene.address_of(2);
  scene.push({0, scene.address_of(8), scene.address_of(8), 0, 0, 0, 0, kProgramStart + 0x210, 0,
              kProgramStart + 0x301});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  EXPECT_THAT(scene.result.frames,
              ElementsAre(frame(kProgram, 0x110), frame(kProgram, 0x20f), frame(kProgram, 0x300)));
}

TEST(Unwinder, AddsTheHighHalfOfADereferencedOffset) {
  UnwindScene scene;
  const ddprof_unwind_rule rule{DDPROF_CFA_DEREF_SP, DDPROF_FP_SAME, 0, (8 << 16) | 16};
  scene.add_module(kProgramStart, kProgram, {{0x100, rule}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.push({0, 0, scene.address_of(4), 0, kProgramStart + 0x301});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
}

TEST(Unwinder, CountsThePushOfALazyBindingStub) {
  const ddprof_unwind_rule plt{DDPROF_CFA_PLT, DDPROF_FP_SAME, 0, 11};
  for (const bool has_pushed : {false, true}) {
    UnwindScene scene;
    scene.add_module(kProgramStart, kProgram, {{0x100, plt}, {0x300, kEndRule}});
    scene.registers.pc = kProgramStart + (has_pushed ? 0x10b : 0x106);
    if (has_pushed) scene.push({5});
    scene.push({kProgramStart + 0x301});
    EXPECT_EQ(scene.unwind().reason, StopReason::complete);
    EXPECT_EQ(scene.result.frames.size(), 2U);
  }
}

TEST(Unwinder, UsesOtherRegistersInTheLeafOnly) {
  const ddprof_unwind_rule by_r10{DDPROF_CFA_REGISTER + 10, DDPROF_FP_SAME, 0, 8};
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, by_r10}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.registers.by_dwarf_number[10] = scene.address_of(3);
  scene.push({0, 0, 0, kProgramStart + 0x301});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);

  scene.stack[3] = kProgramStart + 0x120;
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::unsupported_rule);
  EXPECT_EQ(scene.result.stop_file, kProgram);
  EXPECT_EQ(scene.result.frames.size(), 2U);
}

TEST(Unwinder, TakesAReturnAddressFromARegisterInTheLeafOnly) {
  // vfork pops its return address into rdi (DWARF 5): nothing of its frame is on the stack.
  const ddprof_unwind_rule vfork{DDPROF_CFA_SP, DDPROF_RA_IN_REGISTER << 4, 5, 0};
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, vfork}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.registers.by_dwarf_number[5] = kProgramStart + 0x301;
  scene.push({0});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  scene.registers.by_dwarf_number[5] = kProgramStart + 0x120;
  EXPECT_EQ(scene.unwind().reason,
            StopReason::bad_memory);  // a caller without a frame: the CFA does not grow
}

TEST(Unwinder, StopsAtRulesThatTheTableCannotExpress) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, {DDPROF_CFA_UNSUPPORTED, 0, 0, 0}}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0});
  EXPECT_EQ(scene.unwind().reason, StopReason::unsupported_rule);
}

TEST(Unwinder, TreatsAReturnAddressOfZeroAsTheRoot) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  EXPECT_EQ(scene.result.frames.size(), 1U);
}

TEST(Unwinder, StopsAtAReturnAddressThatIsInNoModule) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0x999999});
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::unknown_code);
  EXPECT_THAT(scene.result.frames, ElementsAre(frame(kProgram, 0x100)));
  EXPECT_EQ(scene.result.stop_file, kProgram);
}

TEST(Unwinder, TellsACopyThatIsTooShortFromARuleThatLeavesTheStack) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(64)}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0, 0});
  EXPECT_EQ(scene.unwind().reason, StopReason::bad_memory);
  EXPECT_EQ(scene.unwind(scene.copy_of(2)).reason, StopReason::truncated_copy);
  EXPECT_EQ(scene.unwind(scene.copy_of(0)).reason, StopReason::truncated_copy);
}

TEST(Unwinder, RefusesAFrameThatDoesNotLieAboveItsCallee) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, {DDPROF_CFA_FP, DDPROF_FP_SAME, 0, 16}}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.registers.fp = scene.address_of(0);
  scene.push({0, kProgramStart + 0x110, 0, 0});  // the caller's CFA is the same again
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::bad_memory);
  EXPECT_EQ(scene.result.frames.size(), 2U);
}

TEST(Unwinder, KeepsBothEndsOfAStackWithTooManyFrames) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.stack.assign(Unwinder::kMaxFrames - 1, kProgramStart + 0x110);
  scene.stack.back() = kProgramStart + 0x301;
  EXPECT_EQ(scene.unwind().inner_frames, 0U);
  EXPECT_EQ(scene.result.frames.size(), Unwinder::kMaxFrames);
  scene.stack.insert(scene.stack.begin(), 10, kProgramStart + 0x120);
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_EQ(scene.result.inner_frames, Unwinder::kMaxFrames / 2);
  ASSERT_EQ(scene.result.frames.size(), Unwinder::kMaxFrames);
  EXPECT_EQ(scene.result.frames[0].address, 0x100U);
  EXPECT_EQ(scene.result.frames[10].address, 0x11fU);
  EXPECT_EQ(scene.result.frames[11].address, 0x10fU);
  EXPECT_EQ(scene.result.frames.back().address, 0x300U);
}

TEST(Unwinder, EndsAtTheDepthLimit) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.stack.assign(20000, kProgramStart + 0x110);
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::depth_limit);
  EXPECT_EQ(scene.result.inner_frames, 0U);
  EXPECT_EQ(scene.result.frames.size(), Unwinder::kMaxFrames);
}

// makecontext gives a function __start_context to return to, which nothing has called.
TEST(Unwinder, TakesTheStartOfAFunctionForTheRootOfAContext) {
  UnwindScene scene;
  std::vector<std::byte> bytes(0x200, std::byte{0x90});
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x110, {}}, {0x120, sp_rule(8)}}, bytes);
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({kProgramStart + 0x120, 0x999, 0x999});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  EXPECT_THAT(scene.result.frames, ElementsAre(frame(kProgram, 0x100), frame(kProgram, 0x120)));
  scene.stack[0] = kProgramStart + 0x121;  // not the start
  EXPECT_NE(scene.unwind().reason, StopReason::complete);
  scene.stack[0] = kProgramStart + 0x11f;  // padding
  EXPECT_NE(scene.unwind().reason, StopReason::complete);
  scene.stack[0] = kProgramStart + 0x120;
  bytes[0x11b] = std::byte{0xe8};  // a call that does not return, of code without CFI
  EXPECT_NE(scene.unwind().reason, StopReason::complete);
}

TEST(Unwinder, SaysThatThereWereNoRegisters) {
  UnwindScene scene;
  scene.registers = {};
  EXPECT_EQ(scene.unwind().reason, StopReason::no_registers);
  EXPECT_TRUE(scene.result.frames.empty());
}

TEST(Unwinder, DoesNotConfuseProcessesThatHaveOtherCodeAtTheSameAddress) {
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0, kProgramStart + 0x301});
  EXPECT_EQ(scene.unwind().frames.size(), 1U);  // return address 0
  scene.map.clear();
  scene.add_module(kProgramStart, kLibrary, {{0x100, sp_rule(16)}, {0x300, kEndRule}});
  EXPECT_THAT(scene.unwind().frames, ElementsAre(frame(kLibrary, 0x100), frame(kLibrary, 0x300)));
}

// Code without CFI.

TEST(UnwinderFallback, FollowsFramePointersThroughAnonymousCode) {
  UnwindScene scene;
  scene.add_module_without_table(0x50000, FileId::none);
  scene.add_module(kProgramStart, kProgram, {{0x100, kFramePointerRule}, {0x300, kEndRule}});
  scene.registers.pc = 0x50100;
  scene.registers.fp = scene.address_of(1);
  scene.push(
      {0, scene.address_of(4), kProgramStart + 0x110, 0, scene.address_of(6), kProgramStart + 0x301, 0});
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  ASSERT_EQ(scene.result.frames.size(), 3U);
  EXPECT_EQ(scene.result.frames[1], frame(kProgram, 0x10f));
}

TEST(UnwinderFallback, EndsAChainOfFramePointersAtZero) {
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram);
  scene.registers.pc = kProgramStart + 0x100;
  scene.registers.fp = scene.address_of(1);
  scene.push({0, 0, kProgramStart + 0x200});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  EXPECT_EQ(scene.result.frames.size(), 2U);
}

TEST(UnwinderFallback, TheLastInstructionOfAModuleMayBeACall) {
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram);
  scene.registers.pc = kProgramStart + 0x100;
  scene.registers.fp = scene.address_of(1);
  scene.push({0, 0, kProgramStart + UnwindScene::kModuleBytes});  // of a function that does not return
  scene.unwind();
  ASSERT_EQ(scene.result.frames.size(), 2U);
  EXPECT_EQ(scene.result.frames[1], frame(kProgram, UnwindScene::kModuleBytes - 1));
}

// ld.so's has no CFI to say that nothing called it.
TEST(UnwinderFallback, TheFirstBytesOfAProgramAreItsRoot) {
  UnwindScene scene;
  scene.map.add({.start = {kProgramStart},
                 .end = {kProgramStart + 0x1000},
                 .bias = kProgramStart,
                 .file = kProgram,
                 .entry = 0x100});
  const auto reason_at = [&](std::uint64_t address) {
    scene.registers.pc = kProgramStart + address;
    return scene.unwind().reason;
  };
  EXPECT_EQ(reason_at(0x100), StopReason::complete);
  EXPECT_EQ(reason_at(0x13f), StopReason::complete);
  EXPECT_EQ(reason_at(0x140), StopReason::no_unwind_info);
  EXPECT_EQ(reason_at(0xff), StopReason::no_unwind_info);
}

// Beyond the copy it cannot be read, but it may be a frame.
TEST(UnwinderFallback, AFrameHasAMebibyteAtMost) {
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram);
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0, 0, 0, 0});
  const auto reason_with = [&](std::uint64_t bytes) {
    scene.registers.fp = UnwindScene::kStackStart + bytes;
    return scene.unwind(scene.copy_of(4)).reason;
  };
  EXPECT_EQ(reason_with(1U << 20U), StopReason::truncated_copy);
  EXPECT_EQ(reason_with((1U << 20U) + 8), StopReason::no_unwind_info);
}

TEST(UnwinderFallback, RefusesFramePointersThatDoNotVerify) {
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram);
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0, scene.address_of(3), kProgramStart + 0x200, 0, 0});
  const auto reason_with = [&](std::uint64_t fp) {
    scene.registers.fp = fp;
    return scene.unwind().reason;
  };
  EXPECT_EQ(reason_with(scene.address_of(1) + 4), StopReason::no_unwind_info);  // not aligned
  EXPECT_EQ(reason_with(scene.address_of(0) - 8), StopReason::no_unwind_info);  // below the stack pointer
  EXPECT_EQ(reason_with(scene.address_of(500)), StopReason::no_unwind_info);    // outside of the stack
  EXPECT_EQ(reason_with(0), StopReason::no_unwind_info);                        // not a frame pointer at all
  scene.stack[1] = 8;  // the next one would be below this one
  EXPECT_EQ(reason_with(scene.address_of(1)), StopReason::no_unwind_info);
  scene.stack[1] = scene.address_of(3);
  scene.stack[2] = 0x99999;  // returns to no code
  EXPECT_EQ(reason_with(scene.address_of(1)), StopReason::no_unwind_info);
  EXPECT_EQ(scene.result.stop_file, kProgram);
  scene.registers.pc = 0x99999;
  EXPECT_EQ(reason_with(scene.address_of(1)), StopReason::unknown_code);
}

TEST(UnwinderFallback, AsksForACallBeforeTheReturnAddressWhereTheCodeIsKnown) {
  UnwindScene scene;
  const auto bytes = code(0x90, 0x90, 0xe8, 0, 0, 0, 0, 0x90, 0x90);
  scene.add_module_without_table(0x50000, FileId::none);
  scene.add_module(kProgramStart, kProgram, {{0, kEndRule}}, bytes);
  scene.registers.pc = 0x50100;
  scene.registers.fp = scene.address_of(0);
  // The saved register is no frame pointer (its owner keeps data there): the call alone shows that this is a
  // frame.
  scene.push({0x1234, kProgramStart + 7});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  scene.stack[1] = kProgramStart + 8;
  EXPECT_EQ(scene.unwind().reason, StopReason::no_unwind_info);
}

struct HintCase {
  const char* name;
  std::vector<unsigned char> at_pc;
  std::size_t return_index;             // word of the stack that holds the return address
  std::optional<std::size_t> fp_index;  // word that holds the caller's frame pointer
};

class UnwinderHint : public testing::TestWithParam<HintCase> {
 protected:
  static void expect_caller_is_found(const HintCase& hint, FileId file);
};

void UnwinderHint::expect_caller_is_found(const HintCase& hint, FileId file) {
  UnwindScene scene;
  std::vector<std::byte> bytes{std::byte{0xe8}, {}, {}, {}, {}, std::byte{0x90}};  // a call that returns to 5
  for (const unsigned char byte : hint.at_pc) bytes.push_back(std::byte{byte});
  scene.add_module_without_table(kProgramStart, file, bytes);
  scene.registers.pc = kProgramStart + 6;
  scene.registers.fp = scene.address_of(7);  // of the caller, unless it was saved
  scene.stack.assign(12, 0);
  scene.stack[hint.return_index] = kProgramStart + 5;
  if (hint.fp_index) {
    scene.stack[*hint.fp_index] = scene.address_of(7);
    scene.registers.fp = 1;
  }
  scene.stack[8] = kProgramStart + 5;  // the caller's own frame; its chain ends with 0
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_EQ(scene.result.frames.size(), 3U);
}

TEST_P(UnwinderHint, FindsTheCallerOfALeafWithoutFrame) { expect_caller_is_found(GetParam(), kProgram); }

// Its instructions are not walked over: it may change.
TEST_P(UnwinderHint, FindsTheCallerOfGeneratedCode) { expect_caller_is_found(GetParam(), FileId::none); }

// Code that was generated: a call that returns to 5, a system call before 8, and bytes that are no
// instruction.
class UnwinderSystemCall : public testing::Test {
 protected:
  UnwinderSystemCall() {
    scene_.add_module_without_table(kProgramStart, FileId::none, code_);
    scene_.registers.pc = kProgramStart + 8;
    scene_.registers.fp = 1;  // no frame pointer
    scene_.registers.by_dwarf_number[0] = 1;
  }

  const std::array<std::byte, 10> code_ = code(0xe8, 0, 0, 0, 0, 0x90, 0x0f, 0x05, 0x06, 0x06);
  UnwindScene scene_;
};

TEST_F(UnwinderSystemCall, KeepsNothingOnTheStack) {
  scene_.push({kProgramStart + 5, 0, 0});
  scene_.unwind();
  ASSERT_EQ(scene_.result.frames.size(), 2U);
  EXPECT_EQ(scene_.result.frames[1].address, 4U) << "in the call";
}

TEST_F(UnwinderSystemCall, OfCloneIsTheRootOfTheChild) {
  scene_.push({0x1234, 0, 0});
  EXPECT_EQ(scene_.unwind().reason, StopReason::no_unwind_info);
  scene_.registers.by_dwarf_number[0] = 0;
  EXPECT_EQ(scene_.unwind().reason, StopReason::complete);
  EXPECT_EQ(scene_.result.frames.size(), 1U);
  scene_.registers.pc = kProgramStart + 9;  // not after the call
  EXPECT_EQ(scene_.unwind().reason, StopReason::no_unwind_info);
}

INSTANTIATE_TEST_SUITE_P(
    All, UnwinderHint,
    testing::Values(HintCase{"push_rbp_comes_next", {0x55}, 0, {}},
                    HintCase{"after_endbr64", {0xf3, 0x0f, 0x1e, 0xfa, 0x55}, 0, {}},
                    HintCase{"mov_rbp_comes_next", {0x48, 0x89, 0xe5}, 1, 0}, HintCase{"ret", {0xc3}, 0, {}},
                    HintCase{"pop_rbp_ret", {0x5d, 0xc3}, 1, 0},
                    HintCase{"add_pop_pop_ret", {0x48, 0x83, 0xc4, 0x08, 0x5b, 0x41, 0x5c, 0xc3}, 3, {}},
                    HintCase{"uprobe_trampoline", {0x58, 0x41, 0x5b, 0x59, 0xc3}, 3, {}},
                    HintCase{"import_stub", {0xff, 0x25, 0, 0, 0, 0}, 0, {}},
                    HintCase{"lazy_import_stub", {0x68, 1, 0, 0, 0, 0xe9, 0, 0, 0, 0}, 0, {}}),
    [](const auto& instance) { return instance.param.name; });

// Signals.

// A ucontext as the kernel lays it out, in words: rbp is word 15, rsp 20, rip 21.
std::vector<std::uint64_t> x86_64_context(std::uint64_t pc, std::uint64_t sp, std::uint64_t fp) {
  std::vector<std::uint64_t> words(40, 0);
  words[15] = fp;
  words[20] = sp;
  words[21] = pc;
  return words;
}

// Three functions without CFI and without frame pointers, 0x40 apart: the first never returns.
std::vector<std::byte> code_without_cfi() {
  std::vector<std::byte> code(0x100, std::byte{0xcc});
  const auto put = [&](std::size_t at, std::initializer_list<unsigned> bytes) {
    for (const unsigned byte : bytes) code[at++] = static_cast<std::byte>(byte);
  };
  put(0x00, {0xe8, 0x3b, 0, 0, 0, 0xf4});           // call 0x40; hlt
  put(0x40, {0x53, 0x48, 0x83, 0xec, 0x10});        // push %rbx; sub $16,%rsp
  put(0x45, {0xe8, 0x36, 0, 0, 0});                 // call 0x80
  put(0x4a, {0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3});  // add $16,%rsp; pop %rbx; ret
  put(0x80, {0x55, 0x90, 0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x47, 1, 0x5d,
             0xc3});  // push %rbp; nop; vmovdqu64; pop %rbp; ret
  return code;
}

TEST(UnwinderCode, MakesRulesFromInstructionsWhereThereAreNoOthers) {
  const auto code = code_without_cfi();
  UnwindScene scene;
  scene.add_module(kProgramStart, kProgram, {}, code);
  scene.registers.pc = kProgramStart + 0x81;
  scene.registers.fp = 7;  // of no use
  scene.push({1, kProgramStart + 0x4a, 2, 3, 4, kProgramStart + 0x05});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
  EXPECT_THAT(scene.result.frames,
              ElementsAre(frame(kProgram, 0x81), frame(kProgram, 0x49), frame(kProgram, 0x04)));
  EXPECT_EQ(scene.result.frames_from_code, 2U);
}

// libc calls exit() behind main(): without its CFI, which may come later, that looks like the root.
TEST(UnwinderCode, IsNoRootWhereTheTableIsNotThereYet) {
  const auto code = code_without_cfi();
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram, code);
  scene.registers.pc = kProgramStart + 0x81;
  scene.registers.fp = 7;
  scene.push({1, kProgramStart + 0x4a, 2, 3, 4, kProgramStart + 0x05});
  EXPECT_EQ(scene.unwind().reason, StopReason::no_unwind_info);
  EXPECT_EQ(scene.result.frames.size(), 3U);
}

TEST(UnwinderCode, AsksForACallBeforeTheReturnAddress) {
  const auto code = code_without_cfi();
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram, code);
  scene.registers.pc = kProgramStart + 0x81;
  scene.registers.fp = 7;
  scene.push({1, kProgramStart + 0x4b, 2, 3, 4, kProgramStart + 0x05});
  EXPECT_EQ(scene.unwind().reason, StopReason::no_unwind_info);
  EXPECT_EQ(scene.result.frames.size(), 1U);
  EXPECT_EQ(scene.result.frames_from_code, 0U);
}

TEST(UnwinderCode, IsNoRootAtALeafThatNeverReturns) {
  const auto code = code_without_cfi();
  UnwindScene scene;
  scene.add_module_without_table(kProgramStart, kProgram, code);
  scene.registers.pc = kProgramStart + 0x05;
  scene.push({0, 0});
  EXPECT_EQ(scene.unwind().reason, StopReason::no_unwind_info);
}

// Thirty calls, one after the other, and then 3,000 instructions to the return.
TEST(UnwinderCode, WalksOverLongCodeAreSpreadOverSamples) {
  constexpr std::size_t kCalls = 30, kCallBytes = 5;
  std::vector<std::byte> code(UnwindScene::kModuleBytes, std::byte{0xcc});
  std::fill_n(code.begin(), 3000 + kCalls * kCallBytes, std::byte{0x90});
  code[3000 + kCalls * kCallBytes] = std::byte{0xc3};
  UnwindScene scene;
  for (std::size_t call = 0; call < kCalls; ++call) {
    std::fill_n(code.begin() + static_cast<std::ptrdiff_t>(call * kCallBytes), kCallBytes, std::byte{0});
    code[call * kCallBytes] = std::byte{0xe8};
    scene.push({kProgramStart + (call + 1) * kCallBytes});
  }
  scene.add_module_without_table(kProgramStart, kProgram, code);
  scene.registers.pc = kProgramStart + kCalls * kCallBytes + 10;
  scene.unwind();
  const std::size_t first = scene.result.frames.size();
  EXPECT_GT(first, 2U);
  EXPECT_LT(first, 10U);
  scene.unwind();
  EXPECT_GT(scene.result.frames.size(), first);
  for (int sample = 0; sample < 20; ++sample) scene.unwind();
  EXPECT_EQ(scene.result.frames.size(), kCalls + 1);
}

TEST(UnwinderSignal, GoesThroughAHandlerIntoTheInterruptedInstruction) {
  UnwindScene scene;
  scene.add_module(kLibraryStart, kLibrary, {{0xff, kSignalRule}, {0x110, {}}});
  // The interrupted function is at its first instruction: one byte less would be another row.
  scene.add_module(kProgramStart, kProgram,
                   {{0x100, sp_rule(8)}, {0x1ff, sp_rule(800)}, {0x200, sp_rule(8)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.push({kLibraryStart + 0x100});
  const auto context = x86_64_context(kProgramStart + 0x200, scene.address_of(50), 0);
  scene.stack.insert(scene.stack.end(), context.begin(), context.end());
  scene.stack.resize(51);
  scene.stack[50] = kProgramStart + 0x301;
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_THAT(scene.result.frames, ElementsAre(frame(kProgram, 0x110), frame(kLibrary, 0x100),
                                               frame(kProgram, 0x200), frame(kProgram, 0x300)));
}

TEST(UnwinderSignal, RestoresAllRegistersOfTheInterruptedFunction) {
  UnwindScene scene;
  const ddprof_unwind_rule by_r10{DDPROF_CFA_REGISTER + 10, DDPROF_FP_SAME, 0, 8};
  scene.add_module(kLibraryStart, kLibrary, {{0xff, kSignalRule}, {0x110, {}}});
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x200, by_r10}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.push({kLibraryStart + 0x100});
  auto context = x86_64_context(kProgramStart + 0x200, scene.address_of(45), 0);
  context[5 + 2] = scene.address_of(50);  // r10 is the third register
  scene.stack.insert(scene.stack.end(), context.begin(), context.end());
  scene.stack.resize(51);
  scene.stack[50] = kProgramStart + 0x301;
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
}

TEST(UnwinderSignal, KnowsATrampolineWithoutCfiByItsBytes) {
  UnwindScene scene;
  const auto trampoline = code(0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x90);
  scene.add_module_without_table(kLibraryStart, kLibrary, trampoline);
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.push({kLibraryStart + 1});
  const auto context = x86_64_context(kProgramStart + 0x300, scene.address_of(50), 0);
  scene.stack.insert(scene.stack.end(), context.begin(), context.end());
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_EQ(scene.result.frames[1], frame(kLibrary, 1));
}

TEST(UnwinderSignal, SaysThatTheInterruptedStackWasNotCopiedWhenTheHandlerHasItsOwn) {
  UnwindScene scene;
  scene.add_module(kLibraryStart, kLibrary, {{0xff, kSignalRule}, {0x110, {}}});
  scene.add_module(kProgramStart, kProgram, {{0x100, sp_rule(8)}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.push({kLibraryStart + 0x100});
  const auto context = x86_64_context(kProgramStart + 0x120, 0x7e0000000000, 0);
  scene.stack.insert(scene.stack.end(), context.begin(), context.end());
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::truncated_copy);
  EXPECT_EQ(scene.result.frames.size(), 3U);
}

}  // namespace
}  // namespace ddprof
