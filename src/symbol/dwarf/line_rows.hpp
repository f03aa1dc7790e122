#pragma once

#include <array>
#include <cstdint>

#include "elf/byte_cursor.hpp"
#include "symbol/dwarf/line_program.hpp"

namespace ddprof {

struct LineRow {
  std::uint64_t address = 0;
  std::uint64_t file = 1;
  std::uint32_t line = 1;
  std::uint32_t column = 0;
  bool ends_sequence = false;
};

// Runs a line program row by row, and keeps nothing of the table that it makes.
class LineRows {
 public:
  explicit LineRows(const LineProgram& program);

  // Valid until the next call; null at the end.
  const LineRow* next();

 private:
  struct Special {
    std::uint8_t operations = 0;
    std::int16_t lines = 0;
  };

  void run_extended();
  void run_standard(std::uint8_t opcode);
  void advance(std::uint64_t operations);

  LineProgram::Header header_;
  ByteCursor cursor_;
  LineRow row_;
  std::uint64_t operation_ = 0;  // within an instruction, on machines with very long ones
  std::array<Special, 256> specials_;
  bool has_row_ = false;
};

}  // namespace ddprof
