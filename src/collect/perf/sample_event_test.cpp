#include "collect/perf/sample_event.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
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

TEST(SampleValue, IsThePeriodTimesTheScale) {
  EventSpec spec;
  SampleRecord record;
  record.period = 10101010;
  EXPECT_EQ(sample_value(spec, record, {}), 10101010);
  spec.value_scale = 0.5;
  EXPECT_EQ(sample_value(spec, record, {}), 5050505);
}

TEST(SampleValue, NeverTurnsNegativeByItself) {
  EventSpec spec;
  SampleRecord record;
  record.period = std::numeric_limits<std::uint64_t>::max();
  EXPECT_GT(sample_value(spec, record, {}), 0);
  spec.value_scale = 1e300;
  EXPECT_GT(sample_value(spec, record, {}), 0);
}

TEST(SampleValue, ComesFromTheRawData) {
  std::array<std::uint32_t, 3> raw = {1, 0x11223344, 3};
  EventSpec spec;
  spec.value_source = EventSpec::ValueSource::raw_field;
  spec.raw_offset = 4;
  spec.raw_size = 4;
  SampleRecord record;
  record.raw = std::as_bytes(std::span(raw));
  EXPECT_EQ(sample_value(spec, record, {}), 0x11223344);
  spec.raw_size = 2;
  EXPECT_EQ(sample_value(spec, record, {}), 0x3344);
  spec.raw_offset = 12;
  EXPECT_EQ(sample_value(spec, record, {}), 0);
  spec.raw_offset = 10;
  spec.raw_size = 8;  // beyond the end
  EXPECT_EQ(sample_value(spec, record, {}), 0);
}

TEST(SampleValue, ComesFromARegister) {
  const auto& table = native_perf_registers();
  Registers registers;
  registers.by_dwarf_number[static_cast<std::size_t>(table.arguments[1])] = 4096;
  EventSpec spec;
  spec.value_source = EventSpec::ValueSource::register_argument;
  spec.argument = 2;
  EXPECT_EQ(sample_value(spec, {}, registers), 4096);
}

TEST(PerfRegisters, TurnsTheOrderOfTheKernelIntoThatOfI386) {
  auto values = numbered(kPerfRegistersI386);
  ASSERT_EQ(kPerfRegistersI386.mask, kPerfRegistersX86_64.mask);
  values[7] |= std::uint64_t{0xdead} << 32U;
  const Registers registers = to_registers(kPerfRegistersI386, values);
  EXPECT_EQ(registers.by_dwarf_number[0], 100U);  // eax
  EXPECT_EQ(registers.by_dwarf_number[3], 101U);  // ebx
  EXPECT_EQ(registers.by_dwarf_number[1], 102U);  // ecx
  EXPECT_EQ(registers.by_dwarf_number[2], 103U);  // edx
  EXPECT_EQ(registers.by_dwarf_number[6], 104U);  // esi
  EXPECT_EQ(registers.by_dwarf_number[7], 105U);  // edi
  EXPECT_EQ(registers.fp, 106U);
  EXPECT_EQ(registers.sp, 107U) << "the upper half is undefined";
  EXPECT_EQ(registers.pc, 108U);
  EXPECT_FALSE(argument_register(kPerfRegistersI386, registers, 1)) << "arguments are on the stack";
}

TEST(SampleEvent, TellsA32BitTaskFromOthers) {
  std::array<std::uint64_t, 17> registers{};
  std::array<std::byte, 8> stack{};
  SampleRecord record;
  record.registers_abi = PERF_SAMPLE_REGS_ABI_32;
  record.registers = registers;
  record.stack = stack;
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).has_registers);
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).is_32_bit);
  EXPECT_EQ(to_sample_event(record, {}, 0, {}).stack.size(), 8U);
  record.registers_abi = PERF_SAMPLE_REGS_ABI_NONE;
  EXPECT_FALSE(to_sample_event(record, {}, 0, {}).has_registers);
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).stack.empty());
  record.registers_abi = PERF_SAMPLE_REGS_ABI_64;
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).has_registers);
  EXPECT_FALSE(to_sample_event(record, {}, 0, {}).is_32_bit);
  EXPECT_EQ(to_sample_event(record, {}, 0, {}).stack.size(), 8U);
}

TEST(SampleEvent, TellsTheKernelFromTheUser) {
  SampleRecord record;
  record.misc = PERF_RECORD_MISC_KERNEL;
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).in_kernel);
  record.misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP;
  EXPECT_FALSE(to_sample_event(record, {}, 0, {}).in_kernel);
}

TEST(ScaledValue, ExtrapolatesACounterThatRanHalfOfTheTime) {
  EXPECT_EQ(scaled_value({.value = 100, .time_enabled = 40, .time_running = 20}), 200);
  EXPECT_EQ(scaled_value({.value = 100, .time_enabled = 40, .time_running = 40}), 100);
  EXPECT_EQ(scaled_value({.value = 100}), 100);
}

TEST(Thinning, KeepsEverythingAtFactorOne) {
  Thinning thinning;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(thinning.draw_weight(), 1);
}

TEST(Thinning, KeepsTheSumOfWhatItLeavesOut) {
  Thinning thinning;
  thinning.set_factor(8, 0);
  int kept = 0;
  double sum = 0;
  constexpr int kSamples = 80'000;
  for (int i = 0; i < kSamples; ++i) {
    double weight = thinning.draw_weight();
    kept += weight > 0 ? 1 : 0;
    sum += weight;
  }
  EXPECT_NEAR(kept, kSamples / 8, 400);  // four standard deviations
  EXPECT_NEAR(sum, kSamples, 3200);
}

TEST(Thinning, KnowsWhichSamplesWereTakenBeforeAChange) {
  Thinning thinning;
  thinning.set_factor(4, 1000);
  EXPECT_EQ(thinning.weight_at(999), 1);
  EXPECT_EQ(thinning.weight_at(1000), Thinning::slowed(4));
  thinning.set_factor(2, 2000);
  EXPECT_EQ(thinning.weight_at(1500), Thinning::slowed(4));
  EXPECT_EQ(thinning.weight_at(2000), Thinning::slowed(2));
}

}  // namespace

}  // namespace ddprof
