#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/registers.hpp"

namespace ddprof {

// DWARF numbers of the registers that unwinding follows.
struct CfiRegisterNumbers {
  std::uint64_t sp;
  std::uint64_t fp;
  std::uint64_t return_address;  // the usual column of the return address; a CIE may name another
};
constexpr CfiRegisterNumbers cfi_registers(Architecture architecture) {
  return architecture == Architecture::x86_64 ? CfiRegisterNumbers{7, 6, 16} : CfiRegisterNumbers{31, 29, 30};
}

// Where the caller's value of a register is (DWARF 5, section 6.4.1).
struct CfiRegisterRule {
  enum class Kind : std::uint8_t {
    unspecified,
    undefined,
    same,
    at_cfa,            // at CFA + value
    cfa_plus,          // is CFA + value
    in_register,       // in register number `value`
    at_expression,     // at the address that the expression computes, CFA pushed
    value_expression,  // is what the expression computes, CFA pushed
  };
  Kind kind = Kind::unspecified;
  std::int64_t value = 0;
  std::span<const std::byte> expression = {};
};

struct CfaRule {
  enum class Kind : std::uint8_t { none, register_plus, expression };
  Kind kind = Kind::none;
  std::uint64_t register_number = 0;
  std::int64_t offset = 0;
  std::span<const std::byte> expression = {};
};

// One row of the virtual unwind table, cut down to the columns that a profiler needs.
struct CfiState {
  CfaRule cfa;
  CfiRegisterRule fp;
  CfiRegisterRule return_address;
  bool sp_is_cfa = true;  // as everywhere but in longjmp and its kin: the caller's sp is the CFA
};

}  // namespace ddprof
