#include "collect/perf/sample_event.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace ddprof {

namespace {

constexpr std::int8_t kNone = PerfRegisterTable::kNone;
constexpr std::int8_t kPc = PerfRegisterTable::kPc;

constexpr std::uint64_t mask_of(const PerfRegisterTable& table) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < table.dwarf_number.size(); ++i)
    if (table.dwarf_number[i] != kNone) mask |= std::uint64_t{1} << i;
  return mask;
}

constexpr PerfRegisterTable make_x86_64() {
  PerfRegisterTable table;
  table.dwarf_number.fill(kNone);
  // ax bx cx dx si di bp sp ip; flags and segments (9 to 15) are of no use to unwinding.
  constexpr std::array<std::int8_t, 9> low = {0, 3, 2, 1, 4, 5, 6, 7, kPc};
  for (std::size_t i = 0; i < low.size(); ++i) table.dwarf_number[i] = low[i];
  for (std::size_t i = 0; i < 8; ++i)
    table.dwarf_number[16 + i] = static_cast<std::int8_t>(8 + i);  // r8..r15
  table.arguments = {5, 4, 1, 2, 8, 9};                            // rdi rsi rdx rcx r8 r9
  table.argument_count = 6;
  table.sp = 7;
  table.fp = 6;
  table.mask = mask_of(table);
  return table;
}

// The kernel has the same numbers for both, and gives as many registers as were asked for. Those that i386
// code does not have come last.
constexpr PerfRegisterTable make_i386() {
  PerfRegisterTable table = make_x86_64();
  // ax bx cx dx si di bp sp ip
  constexpr std::array<std::int8_t, 9> low = {0, 3, 1, 2, 6, 7, 5, 4, kPc};
  for (std::size_t i = 0; i < low.size(); ++i) table.dwarf_number[i] = low[i];
  for (std::size_t i = 0; i < 8; ++i) table.dwarf_number[16 + i] = kNone;
  table.argument_count = 0;  // they are on the stack
  table.sp = 4;
  table.fp = 5;
  table.is_32_bit = true;
  return table;
}

constexpr PerfRegisterTable make_aarch64() {
  PerfRegisterTable table;
  table.dwarf_number.fill(kNone);
  for (std::size_t i = 0; i < 32; ++i) table.dwarf_number[i] = static_cast<std::int8_t>(i);  // x0..x30, sp
  table.dwarf_number[32] = kPc;
  for (std::size_t i = 0; i < 8; ++i) table.arguments[i] = static_cast<std::int8_t>(i);
  table.argument_count = 8;
  table.sp = 31;
  table.fp = 29;
  table.lr = 30;
  table.mask = mask_of(table);
  return table;
}

}  // namespace

constinit const PerfRegisterTable kPerfRegistersX86_64 = make_x86_64();
constinit const PerfRegisterTable kPerfRegistersI386 = make_i386();
constinit const PerfRegisterTable kPerfRegistersAarch64 = make_aarch64();

const PerfRegisterTable& native_perf_registers() {
#if defined(__aarch64__)
  return kPerfRegistersAarch64;
#else
  return kPerfRegistersX86_64;
#endif
}

const PerfRegisterTable* perf_registers_of(std::uint64_t abi) {
  if (abi == PERF_SAMPLE_REGS_ABI_64) return &native_perf_registers();
#if !defined(__aarch64__)
  if (abi == PERF_SAMPLE_REGS_ABI_32) return &kPerfRegistersI386;
#endif
  return nullptr;
}

Registers to_registers(const PerfRegisterTable& table, std::span<const std::uint64_t> values) {
  Registers registers;
  std::size_t next = 0;
  for (std::int8_t number : table.dwarf_number) {
    if (number == kNone) continue;
    if (next == values.size()) break;
    std::uint64_t value = values[next++];
    if (number == kPc)
      registers.pc = value;
    else
      registers.by_dwarf_number[static_cast<std::size_t>(number)] = value;
  }
  if (table.is_32_bit) {  // the upper halves are undefined
    for (std::uint64_t& value : registers.by_dwarf_number) value &= 0xffffffffU;
    registers.pc &= 0xffffffffU;
  }
  registers.sp = registers.by_dwarf_number[table.sp];
  registers.fp = registers.by_dwarf_number[table.fp];
  if (table.lr != kNone) registers.lr = registers.by_dwarf_number[static_cast<std::size_t>(table.lr)];
  return registers;
}

std::optional<std::uint64_t> argument_register(const PerfRegisterTable& table, const Registers& registers,
                                               std::uint32_t position) {
  if (position == 0 || position > table.argument_count) return std::nullopt;
  return registers.by_dwarf_number[static_cast<std::size_t>(table.arguments[position - 1])];
}

std::optional<std::uint64_t> numbered_register(const PerfRegisterTable& table, const Registers& registers,
                                               std::uint32_t perf_number) {
  if (perf_number >= table.dwarf_number.size()) return std::nullopt;
  std::int8_t number = table.dwarf_number[perf_number];
  if (number == kPc) return registers.pc;
  if (number == kNone) return std::nullopt;
  return registers.by_dwarf_number[static_cast<std::size_t>(number)];
}

namespace {

// A little-endian integer of 1, 2, 4 or 8 bytes; others read as many bytes as there are.
std::uint64_t raw_field(std::span<const std::byte> raw, std::uint32_t offset, std::uint32_t size) {
  if (offset >= raw.size()) return 0;
  std::uint64_t value = 0;
  std::size_t bytes = std::min<std::size_t>({size, sizeof value, raw.size() - offset});
  std::memcpy(&value, raw.data() + offset, bytes);
  return value;
}

std::uint64_t unscaled_value(const EventSpec& spec, const SampleRecord& record, const Registers& registers) {
  switch (spec.value_source) {
    case EventSpec::ValueSource::raw_field:
      return raw_field(record.raw, spec.raw_offset, spec.raw_size);
    case EventSpec::ValueSource::register_argument: {
      const PerfRegisterTable* known = perf_registers_of(record.registers_abi);
      const PerfRegisterTable& table = known != nullptr ? *known : native_perf_registers();
      auto value = spec.argument_is_register_number ? numbered_register(table, registers, spec.argument)
                                                    : argument_register(table, registers, spec.argument);
      return value.value_or(0);
    }
    case EventSpec::ValueSource::period:
      break;
  }
  return record.period;
}

std::int64_t saturate(double value) {
  constexpr double kLimit = 9.2e18;
  return static_cast<std::int64_t>(std::llround(std::clamp(value, -kLimit, kLimit)));
}

}  // namespace

std::int64_t sample_value(const EventSpec& spec, const SampleRecord& record, const Registers& registers) {
  std::uint64_t value = unscaled_value(spec, record, registers);
  if (spec.value_scale != 1.0) return saturate(static_cast<double>(value) * spec.value_scale);
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(value, kLargest));
}

SampleEvent to_sample_event(const SampleRecord& record, const EventSpec& spec, std::uint32_t event,
                            Nanoseconds time) {
  SampleEvent sample;
  sample.pid = Pid{static_cast<std::int32_t>(record.id.pid)};
  sample.tid = Tid{static_cast<std::int32_t>(record.id.tid)};
  sample.time = time;
  sample.cpu = record.id.cpu;
  sample.event = event;
  sample.address = record.ip;
  sample.in_kernel = (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  if (const PerfRegisterTable* table = perf_registers_of(record.registers_abi)) {
    sample.has_registers = true;
    sample.is_32_bit = table->is_32_bit;
    sample.registers = to_registers(*table, record.registers);
    sample.stack = record.stack;
  }
  sample.stack_requested = static_cast<std::uint32_t>(record.stack_reserved);
  sample.kernel_chain = kernel_part(record.callchain);
  sample.value = sample_value(spec, record, sample.registers);
  return sample;
}

MapEvent to_map_event(const MmapRecord& record, Nanoseconds time) {
  return {.pid = Pid{static_cast<std::int32_t>(record.pid)},
          .tid = Tid{static_cast<std::int32_t>(record.tid)},
          .time = time,
          .start = Address{record.start},
          .length = record.length,
          .file_offset = record.file_offset,
          .device_major = record.device_major,
          .device_minor = record.device_minor,
          .inode = record.inode,
          .build_id = record.build_id,
          .is_executable = record.is_executable,
          .path = record.path};
}

std::int64_t scaled_value(const ReadRecord& record) {
  if (record.time_running == 0 || record.time_running == record.time_enabled)
    return static_cast<std::int64_t>(record.value);
  return saturate(static_cast<double>(record.value) * static_cast<double>(record.time_enabled) /
                  static_cast<double>(record.time_running));
}

}  // namespace ddprof
