#include "collect/perf/perf_registers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <vector>

namespace ddprof {
namespace {

// Values that tell their place: the n-th register of the sample holds 100 + n.
std::vector<std::uint64_t> numbered(const PerfRegisterTable& table) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(std::popcount(table.mask)));
  std::iota(values.begin(), values.end(), 100);
  return values;
}

TEST(PerfRegisters, TurnsTheX86OrderOfTheKernelIntoThatOfDwarf) {
  // The kernel: ax bx cx dx si di bp sp ip r8..r15.
  Registers registers = to_registers(kPerfRegistersX86_64, numbered(kPerfRegistersX86_64));
  EXPECT_EQ(registers.by_dwarf_number[0], 100U);  // rax
  EXPECT_EQ(registers.by_dwarf_number[3], 101U);  // rbx
  EXPECT_EQ(registers.by_dwarf_number[2], 102U);  // rcx
  EXPECT_EQ(registers.by_dwarf_number[1], 103U);  // rdx
  EXPECT_EQ(registers.by_dwarf_number[4], 104U);  // rsi
  EXPECT_EQ(registers.by_dwarf_number[5], 105U);  // rdi
  EXPECT_EQ(registers.fp, 106U);
  EXPECT_EQ(registers.sp, 107U);
  EXPECT_EQ(registers.pc, 108U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(registers.by_dwarf_number[8 + i], 109 + i);  // r8..r15
}

TEST(PerfRegisters, AsksForNoSegmentRegistersOnX86) { EXPECT_EQ(kPerfRegistersX86_64.mask, 0xff01ffU); }

TEST(PerfRegisters, KeepsTheOrderOfArm) {
  Registers registers = to_registers(kPerfRegistersAarch64, numbered(kPerfRegistersAarch64));
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(registers.by_dwarf_number[i], 100 + i);
  EXPECT_EQ(registers.fp, 129U);
  EXPECT_EQ(registers.lr, 130U);
  EXPECT_EQ(registers.sp, 131U);
  EXPECT_EQ(registers.pc, 132U);
  EXPECT_EQ(kPerfRegistersAarch64.mask, 0x1ffffffffU);
}

TEST(PerfRegisters, LeavesMissingRegistersZero) {
  std::vector<std::uint64_t> two = {1, 2};
  Registers registers = to_registers(kPerfRegistersX86_64, two);
  EXPECT_EQ(registers.by_dwarf_number[3], 2U);
  EXPECT_EQ(registers.sp, 0U);
  EXPECT_EQ(registers.pc, 0U);
}

TEST(PerfRegisters, FindsArgumentsByPosition) {
  Registers registers = to_registers(kPerfRegistersX86_64, numbered(kPerfRegistersX86_64));
  EXPECT_EQ(argument_register(kPerfRegistersX86_64, registers, 1), 105U);  // rdi
  EXPECT_EQ(argument_register(kPerfRegistersX86_64, registers, 2), 104U);  // rsi
  EXPECT_EQ(argument_register(kPerfRegistersX86_64, registers, 3), 103U);  // rdx
  EXPECT_EQ(argument_register(kPerfRegistersX86_64, registers, 4), 102U);  // rcx
  EXPECT_EQ(argument_register(kPerfRegistersX86_64, registers, 6), 110U);  // r9
  EXPECT_FALSE(argument_register(kPerfRegistersX86_64, registers, 0));
  EXPECT_FALSE(argument_register(kPerfRegistersX86_64, registers, 7));
}

TEST(PerfRegisters, FindsRegistersByTheKernelsNumber) {
  Registers registers = to_registers(kPerfRegistersX86_64, numbered(kPerfRegistersX86_64));
  EXPECT_EQ(numbered_register(kPerfRegistersX86_64, registers, 8), 108U);   // ip
  EXPECT_EQ(numbered_register(kPerfRegistersX86_64, registers, 16), 109U);  // r8
  EXPECT_FALSE(numbered_register(kPerfRegistersX86_64, registers, 10));     // cs
  EXPECT_FALSE(numbered_register(kPerfRegistersX86_64, registers, 99));
}

}  // namespace
}  // namespace ddprof
