#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.hpp"
#include "elf/byte_cursor.hpp"

namespace ddprof {

// DWARF numbers of the registers that unwinding follows.
struct CfiRegisterNumbers {
  std::uint64_t sp;
  std::uint64_t fp;
  std::uint64_t return_address;  // the usual column of the return address; a CIE may name another
};
constexpr CfiRegisterNumbers cfi_registers(Architecture architecture) {
  switch (architecture) {
    case Architecture::x86_64:
      return {7, 6, 16};
    case Architecture::i386:
      return {4, 5, 8};
    case Architecture::aarch64:
      break;
  }
  return {31, 29, 30};
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

// The bytes of .eh_frame or .debug_frame and what is needed to decode pointers in them.
struct CfiSection {
  enum class Kind : std::uint8_t { eh_frame, debug_frame };
  Kind kind = Kind::eh_frame;
  Architecture architecture = Architecture::x86_64;
  std::span<const std::byte> data = {};
  std::uint64_t vaddr = 0;      // of data[0]
  std::uint64_t text_base = 0;  // for DW_EH_PE_textrel
  std::uint64_t data_base = 0;  // for DW_EH_PE_datarel
};

// One length-prefixed record: a CIE, an FDE or the terminator.
struct CfiRecord {
  enum class Kind : std::uint8_t { terminator, cie, fde };
  Kind kind = Kind::terminator;
  std::uint64_t offset = 0;              // of its length field
  std::uint64_t next_offset = 0;         // of the record after it
  std::uint64_t cie_offset = 0;          // of an FDE's CIE
  std::span<const std::byte> body = {};  // after the id or CIE pointer
};

struct Cie {
  std::uint64_t offset = 0;
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t return_register = 0;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  std::span<const std::byte> instructions = {};
  CfiState initial = {};  // what `instructions` set up: filled in by run_cie_program()
};

struct Fde {
  const Cie* cie = nullptr;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::span<const std::byte> instructions = {};
};

// The record at an offset; nothing when it does not fit the section.
[[nodiscard]] std::optional<CfiRecord> read_cfi_record(const CfiSection& section, std::uint64_t offset);
[[nodiscard]] std::optional<Cie> read_cie(const CfiSection& section, const CfiRecord& record);
[[nodiscard]] std::optional<Fde> read_fde(const CfiSection& section, const CfiRecord& record, const Cie& cie);

// A pointer in one of the DW_EH_PE_* encodings; fails the cursor when it is indirect or unknown.
[[nodiscard]] std::uint64_t read_encoded_pointer(const CfiSection& section, std::uint8_t encoding,
                                                 ByteCursor& cursor);

}  // namespace ddprof
