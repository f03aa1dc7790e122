#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.hpp"

namespace ddprof {

// How one architecture's perf registers (asm/perf_regs.h) map to DWARF numbers. A sample holds the registers
// of its mask in ascending order of the kernel's numbers.
struct PerfRegisterTable {
  static constexpr std::size_t kMaxRegisters = 33;
  static constexpr std::int8_t kNone = -1;  // not asked for
  static constexpr std::int8_t kPc = -2;    // has a name but no DWARF number

  std::array<std::int8_t, kMaxRegisters> dwarf_number{};  // by the kernel's number
  std::array<std::int8_t, 8> arguments{};                 // DWARF numbers of the integer arguments
  std::uint32_t argument_count = 0;
  std::uint8_t sp = 0, fp = 0;  // DWARF numbers
  std::int8_t lr = kNone;
  std::uint64_t mask = 0;
};

extern const PerfRegisterTable kPerfRegistersX86_64;
extern const PerfRegisterTable kPerfRegistersAarch64;
const PerfRegisterTable& native_perf_registers();

// Turns the registers of a sample (as many as the table's mask has bits; fewer stay 0) into DWARF order.
Registers to_registers(const PerfRegisterTable& table, std::span<const std::uint64_t> values);

// The integer argument `position` (from 1) of a function at its entry.
std::optional<std::uint64_t> argument_register(const PerfRegisterTable& table, const Registers& registers,
                                               std::uint32_t position);
// The register with the kernel's number.
std::optional<std::uint64_t> numbered_register(const PerfRegisterTable& table, const Registers& registers,
                                               std::uint32_t perf_number);

}  // namespace ddprof
