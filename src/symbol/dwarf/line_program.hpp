#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "elf/byte_cursor.hpp"
#include "elf/read_limits.hpp"
#include "symbol/dwarf/address_ranges.hpp"
#include "symbol/dwarf/unit.hpp"

namespace ddprof {

// The line program of a unit: its header, and the bytes that make the table of lines when they are run
// (LineRows). Versions 2 to 5.
class LineProgram {
 public:
  struct Header {
    DwarfEncoding encoding;
    std::uint8_t min_instruction_length = 1;
    std::uint8_t max_operations = 1;
    std::int8_t line_base = 0;
    std::uint8_t line_range = 1;
    std::uint8_t opcode_base = 1;
    std::array<std::uint8_t, 256> operand_counts{};  // by opcode
  };

  // The program that the root entry of `unit` means, which must outlive it; nothing when there is none that
  // can be read.
  static std::optional<LineProgram> parse(const Unit& unit);

  [[nodiscard]] const Header& header() const { return header_; }
  [[nodiscard]] std::span<const std::byte> instructions() const { return instructions_; }
  // Absolute where the compiler recorded its working directory; empty when there is no such file.
  [[nodiscard]] std::string path(std::uint64_t file) const;

 private:
  struct File {
    AttributeValue name;
    std::uint64_t directory = 0;
  };

  explicit LineProgram(const Unit& unit) : unit_(&unit) {}
  bool read_header(ByteCursor& cursor);
  void read_files(ByteCursor& cursor);
  void read_old_files(ByteCursor& cursor);
  [[nodiscard]] std::vector<File> read_table(ByteCursor& cursor) const;
  [[nodiscard]] std::string_view directory_of(const File& file) const;

  const Unit* unit_;
  Header header_;
  std::span<const std::byte> instructions_;
  std::vector<File>
      directories_;          // in version 5 the first is the working directory, in others it is number 1
  std::vector<File> files_;  // numbered from 0 in version 5, from 1 in others
};

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

// A line, with its file as a number of the program that told it.
struct FoundLine {
  std::uint64_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool is_found = false;
};

// The lines of sorted addresses, in their order.
[[nodiscard]] std::vector<FoundLine> find_lines(const LineProgram& program,
                                                std::span<const std::uint64_t> addresses,
                                                const CodeBounds& bounds, WorkBudget& budget);

}  // namespace ddprof
