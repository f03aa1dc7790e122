#include "symbol/dwarf/line_rows.hpp"

namespace ddprof {

namespace {

enum class LineOpcode : std::uint8_t {
  extended = 0,
  copy = 1,
  advance_pc = 2,
  advance_line = 3,
  set_file = 4,
  set_column = 5,
  negate_stmt = 6,
  set_basic_block = 7,
  const_add_pc = 8,
  fixed_advance_pc = 9,
};

enum class ExtendedLineOpcode : std::uint8_t { end_sequence = 1, set_address = 2 };

}  // namespace

LineRows::LineRows(const LineProgram& program)
    : header_(program.header()), cursor_(program.instructions()), specials_{} {
  for (unsigned opcode = header_.opcode_base; opcode < specials_.size(); ++opcode) {
    const unsigned adjusted = opcode - header_.opcode_base;
    specials_[opcode] = {
        static_cast<std::uint8_t>(adjusted / header_.line_range),
        static_cast<std::int16_t>(header_.line_base + static_cast<int>(adjusted % header_.line_range))};
  }
}

const LineRow* LineRows::next() {
  if (row_.ends_sequence) {
    row_ = {};
    operation_ = 0;
  }
  has_row_ = false;
  while (!cursor_.at_end()) {
    const std::uint8_t opcode = cursor_.u8();
    if (opcode >= header_.opcode_base) {
      const Special special = specials_[opcode];
      row_.line += static_cast<std::uint32_t>(special.lines);
      advance(special.operations);
      return &row_;
    }
    if (opcode == 0)
      run_extended();
    else
      run_standard(opcode);
    if (has_row_) return cursor_.failed() ? nullptr : &row_;
  }
  return nullptr;
}

void LineRows::advance(std::uint64_t operations) {
  if (header_.max_operations > 1) {
    const std::uint64_t sum = operation_ + operations;
    operations = sum / header_.max_operations;
    operation_ = sum % header_.max_operations;
  }
  row_.address += operations * header_.min_instruction_length;
}

void LineRows::run_standard(std::uint8_t opcode) {
  switch (LineOpcode{opcode}) {
    case LineOpcode::copy:
      has_row_ = true;
      break;
    case LineOpcode::advance_pc:
      advance(cursor_.uleb());
      break;
    case LineOpcode::advance_line:
      row_.line += static_cast<std::uint32_t>(cursor_.sleb());
      break;
    case LineOpcode::set_file:
      row_.file = cursor_.uleb();
      break;
    case LineOpcode::set_column:
      row_.column = static_cast<std::uint32_t>(cursor_.uleb());
      break;
    case LineOpcode::const_add_pc:
      advance(specials_[255].operations);
      break;
    case LineOpcode::fixed_advance_pc:
      row_.address += cursor_.u16();
      operation_ = 0;
      break;
    default:  // flags of rows, and opcodes of the future
      for (unsigned i = 0; i < header_.operand_counts[opcode]; ++i) cursor_.skip_leb();
  }
}

void LineRows::run_extended() {
  const std::uint64_t length = cursor_.uleb();
  if (length == 0 || length > cursor_.left()) return length == 0 ? void() : cursor_.fail();
  const std::uint64_t end = cursor_.offset() + length;
  switch (ExtendedLineOpcode{cursor_.u8()}) {
    case ExtendedLineOpcode::end_sequence:
      row_.ends_sequence = true;
      has_row_ = true;
      break;
    case ExtendedLineOpcode::set_address:
      row_.address = length == 9 ? cursor_.u64() : length == 5 ? cursor_.u32() : 0;
      operation_ = 0;
      break;
    default:  // discriminators, and what vendors add
      break;
  }
  cursor_.seek(end);
}

}  // namespace ddprof
