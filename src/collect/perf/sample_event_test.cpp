#include "collect/perf/sample_event.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "collect/perf/perf_registers.hpp"

namespace ddprof {
namespace {

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

TEST(SampleEvent, HasNoRegistersOrStackOfA32BitTask) {
  std::array<std::uint64_t, 17> registers{};
  std::array<std::byte, 8> stack{};
  SampleRecord record;
  record.registers_abi = PERF_SAMPLE_REGS_ABI_32;
  record.registers = registers;
  record.stack = stack;
  EXPECT_FALSE(to_sample_event(record, {}, 0, {}).has_registers);
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).stack.empty());
  record.registers_abi = PERF_SAMPLE_REGS_ABI_64;
  EXPECT_TRUE(to_sample_event(record, {}, 0, {}).has_registers);
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

}  // namespace
}  // namespace ddprof
