#include "collect/perf/perf_registers.hpp"

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
constinit const PerfRegisterTable kPerfRegistersAarch64 = make_aarch64();

const PerfRegisterTable& native_perf_registers() {
#if defined(__aarch64__)
  return kPerfRegistersAarch64;
#else
  return kPerfRegistersX86_64;
#endif
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

}  // namespace ddprof
