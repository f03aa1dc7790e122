#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/cfi_reader.hpp"

namespace ddprof {

// Executes call frame instructions: the rows of one FDE after another. One object serves a whole section, so
// that its stack of remembered states is allocated once.
//
//   program.start(section, fde);
//   while (program.next()) use(program.row_begin(), program.row_end(), program.state());
//   if (program.failed()) the addresses from row_end() on are unknown
class CfiProgram {
 public:
  // No compiler nests more than a few; a hostile file shall not make us keep one state per byte.
  static constexpr std::size_t kMaxRememberedStates = 64;

  void start(const CfiSection& section, const Fde& fde);
  // Moves to the next row that covers at least one byte; false at the end of the FDE or on a bad instruction.
  bool next();

  [[nodiscard]] std::uint64_t row_begin() const { return row_begin_; }
  [[nodiscard]] std::uint64_t row_end() const { return location_; }
  [[nodiscard]] const CfiState& state() const { return state_; }
  [[nodiscard]] bool failed() const { return failed_; }

  // Runs the instructions of a CIE and keeps the state that all of its FDEs start with. False when they are
  // bad.
  bool run_cie_program(const CfiSection& section, Cie& cie);

 private:
  enum class Outcome : std::uint8_t { ok, moved, bad };

  Outcome execute_one();
  Outcome execute_extended(std::uint8_t opcode);
  Outcome execute_vendor(std::uint8_t opcode);
  Outcome move_to(std::uint64_t location);
  Outcome advance(std::uint64_t delta);
  void set_rule(std::uint64_t register_number, const CfiRegisterRule& rule);
  Outcome restore(std::uint64_t register_number);
  Outcome restore_state();
  Outcome remember_state();
  [[nodiscard]] std::int64_t factored(std::uint64_t value) const;
  std::span<const std::byte> read_block();

  const CfiSection* section_ = nullptr;
  const Cie* cie_ = nullptr;
  ByteCursor cursor_{{}};
  CfiState state_;
  std::vector<CfiState> remembered_;
  CfiRegisterNumbers registers_{};
  std::uint64_t row_begin_ = 0;
  std::uint64_t location_ = 0;
  std::uint64_t end_ = 0;
  bool failed_ = false;
};

}  // namespace ddprof
