#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "unwind/unwinder_scene.hpp"

namespace ddprof {
namespace {

constexpr std::uint64_t kSignature = 0x007f000000000000;  // NT_ARM_PAC_MASK with 48-bit addresses

// stp x29,x30,[sp,#-bytes]!: the pair lies at the bottom of the frame.
constexpr ddprof_unwind_rule pair_rule(std::int16_t bytes) {
  return {DDPROF_CFA_SP, DDPROF_FP_AT_CFA | DDPROF_RA_AFTER_FP << 4, static_cast<std::int16_t>(-bytes),
          bytes};
}
constexpr ddprof_unwind_rule kLeafRule{DDPROF_CFA_SP, DDPROF_RA_IN_LINK_REGISTER << 4, 0, 0};

template <std::size_t N>
std::array<std::byte, N * 4> code(const std::uint32_t (&instructions)[N]) {
  std::array<std::byte, N * 4> bytes{};
  std::memcpy(bytes.data(), instructions, sizeof instructions);
  return bytes;
}

std::vector<std::uint64_t> addresses(const Stack& stack) {
  std::vector<std::uint64_t> result;
  for (const Frame& frame : stack.frames) result.push_back(frame.address);
  return result;
}

TEST(UnwinderAarch64, TakesTheLinkRegisterInTheLeafAndPairsAfterIt) {
  UnwindScene scene(Architecture::aarch64);
  scene.add_module(kProgramStart, kProgram, {{0x100, kLeafRule}, {0x200, pair_rule(32)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.registers.lr = kProgramStart + 0x210;
  scene.push({scene.address_of(9), kProgramStart + 0x304, 0, 0});
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_THAT(addresses(scene.result), testing::ElementsAre(0x100, 0x20f, 0x303));
}

TEST(UnwinderAarch64, DoesNotBelieveALinkRegisterInACaller) {
  UnwindScene scene(Architecture::aarch64);
  scene.add_module(
      kProgramStart, kProgram,
      {{0x100, pair_rule(16)}, {0x200, {DDPROF_CFA_SP, DDPROF_RA_IN_LINK_REGISTER << 4, 0, 16}}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.registers.lr = kProgramStart + 0x110;
  scene.push({0, kProgramStart + 0x210, 0, 0});
  EXPECT_EQ(scene.unwind().reason, StopReason::unsupported_rule);
}

TEST(UnwinderAarch64, ReadsALinkRegisterThatWasSavedWithoutItsPartner) {
  const ddprof_unwind_rule alone{DDPROF_CFA_SP, DDPROF_RA_AT_FP_OFFSET << 4, -16, 16};
  UnwindScene scene(Architecture::aarch64);
  scene.add_module(kProgramStart, kProgram, {{0x100, alone}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({kProgramStart + 0x304, 0});
  EXPECT_EQ(scene.unwind().reason, StopReason::complete);
}

TEST(UnwinderAarch64, StripsTheSignatureFromReturnAddresses) {
  UnwindScene scene(Architecture::aarch64, kSignature);
  scene.add_module(kProgramStart, kProgram, {{0x100, pair_rule(16)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x100;
  scene.push({0, (kProgramStart + 0x304) | 0x0035000000000000, 0});
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_THAT(addresses(scene.result), testing::ElementsAre(0x100, 0x303));
}

TEST(UnwinderAarch64, RestoresTheInterruptedFrameFromASignalFrame) {
  UnwindScene scene(Architecture::aarch64);
  // The trampoline of the vdso has no CFI on many kernels: mov x8,#139; svc #0.
  const auto trampoline = code({0xd503201f, 0xd2801168, 0xd4000001});
  scene.add_module_without_table(0x50000, FileId{2}, trampoline);
  scene.add_module(kProgramStart, kProgram,
                   {{0x100, pair_rule(16)}, {0x200, kLeafRule}, {0x280, pair_rule(16)}, {0x300, kEndRule}});
  scene.registers.pc = kProgramStart + 0x110;
  scene.push({0, 0x50004});
  // siginfo 16 words, ucontext 22 words, fault address, then x0..x30, sp, pc.
  constexpr std::size_t kRegisters = 2 + 16 + 22 + 1;
  scene.stack.resize(kRegisters + 40);
  scene.stack[kRegisters + 29] = 0;
  scene.stack[kRegisters + 30] = kProgramStart + 0x290;
  scene.stack[kRegisters + 31] = scene.address_of(kRegisters + 36);
  scene.stack[kRegisters + 32] = kProgramStart + 0x200;
  scene.stack[kRegisters + 37] = kProgramStart + 0x304;
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_THAT(addresses(scene.result), testing::ElementsAre(0x110, 4, 0x200, 0x28f, 0x303));
}

TEST(UnwinderAarch64, FallsBackOnFramePointersAndOnTheLinkRegisterAtAPrologue) {
  UnwindScene scene(Architecture::aarch64);
  const auto bytes =
      code({0x94000000, 0xd503233f, 0xa9bf7bfd, 0x910003fd, 0xd503201f});  // bl; paciasp; stp; mov; nop
  scene.add_module_without_table(kProgramStart, kProgram, bytes);
  scene.push({0, 0, 0, kProgramStart + 4});  // the caller's pair is at the third word: its chain ends
  scene.registers.fp = scene.address_of(2);
  scene.registers.lr = kProgramStart + 4;
  scene.registers.pc = kProgramStart + 4;  // paciasp comes next: the caller is in the link register only
  scene.unwind();
  EXPECT_EQ(scene.result.reason, StopReason::complete);
  EXPECT_THAT(addresses(scene.result), testing::ElementsAre(4, 3, 3));

  scene.registers.pc =
      kProgramStart + 16;  // after the prologue: the pair that fp points to is this frame's own
  scene.unwind();
  EXPECT_THAT(addresses(scene.result), testing::ElementsAre(16, 3));
}

}  // namespace
}  // namespace ddprof
