#include "symbol/dwarf/line_program.hpp"

#include <algorithm>

#include "symbol/dwarf/dwarf_file.hpp"

namespace ddprof {

namespace {

// What a column of the tables of version 5 holds (section 6.2.4.1).
enum class LineContent : std::uint64_t { path = 1, directory_index = 2 };

constexpr std::uint64_t kMaxFiles = std::uint64_t{1} << 18U;  // 10 MiB
constexpr std::size_t kMaxPathBytes = 8192;

struct LineColumn {
  LineContent content{};
  DwarfForm form{};
};

std::vector<LineColumn> read_columns(ByteCursor& cursor) {
  std::vector<LineColumn> columns(cursor.u8());
  for (LineColumn& column : columns) {
    column.content = LineContent{cursor.uleb()};
    column.form = DwarfForm{static_cast<std::uint16_t>(cursor.uleb())};
  }
  return columns;
}

void append_path(std::string& path, std::string_view part) {
  if (part.empty()) return;
  if (!path.empty() && !path.ends_with('/')) path += '/';
  path += part;
}

}  // namespace

std::optional<LineProgram> LineProgram::parse(const Unit& unit) {
  if (!unit.root().stmt_list) return std::nullopt;
  LineProgram program(unit);
  const auto section = unit.file().section(DwarfSection::line);
  const std::uint64_t offset = *unit.root().stmt_list;
  DwarfEncoding& encoding = program.header_.encoding;
  ByteCursor cursor(section, offset);
  const std::uint64_t length = read_initial_length(cursor, encoding);
  if (cursor.failed() || length > cursor.left()) {
    unit.file().problem().note("lines at {:#x}: they end outside of .debug_line", offset);
    return std::nullopt;
  }
  ByteCursor inside(section.first(cursor.offset() + length), cursor.offset());
  if (!program.read_header(inside)) {
    unit.file().problem().note("lines at {:#x}: the header cannot be read", offset);
    return std::nullopt;
  }
  return program;
}

bool LineProgram::read_header(ByteCursor& cursor) {
  header_.encoding.version = static_cast<std::uint8_t>(std::min<std::uint16_t>(cursor.u16(), 255));
  const std::uint8_t version = header_.encoding.version;
  if (version < 2 || version > 5) return false;
  header_.encoding.address_size = unit_->encoding().address_size;
  if (version >= 5) {
    header_.encoding.address_size = cursor.u8();
    cursor.skip(1);  // size of a segment selector
  }
  const std::uint64_t header_length = cursor.word(header_.encoding.offset_size);
  if (cursor.failed() || header_length > cursor.left()) return false;
  if (!unit_->file().budget().spend(header_length)) return false;
  const std::uint64_t instructions = cursor.offset() + header_length;
  header_.min_instruction_length = cursor.u8();
  if (version >= 4) header_.max_operations = std::max<std::uint8_t>(cursor.u8(), 1);
  cursor.skip(1);  // default_is_stmt
  header_.line_base = static_cast<std::int8_t>(cursor.u8());
  header_.line_range = cursor.u8();
  header_.opcode_base = cursor.u8();
  for (std::size_t opcode = 1; opcode < header_.opcode_base; ++opcode)
    header_.operand_counts[opcode] = cursor.u8();
  if (cursor.failed() || header_.line_range == 0 || header_.opcode_base == 0) return false;
  if (version >= 5)
    read_files(cursor);
  else
    read_old_files(cursor);
  const auto end = cursor.failed() ? instructions : cursor.offset() + cursor.left();
  const auto section = unit_->file().section(DwarfSection::line);
  instructions_ = section.subspan(instructions, std::max(end, instructions) - instructions);
  return true;
}

void LineProgram::read_files(ByteCursor& cursor) {
  directories_ = read_table(cursor);
  files_ = read_table(cursor);
}

std::vector<LineProgram::File> LineProgram::read_table(ByteCursor& cursor) const {
  const auto columns = read_columns(cursor);
  const std::uint64_t count = cursor.uleb();
  std::vector<File> files;
  if (columns.empty()) return files;
  for (std::uint64_t i = 0; i < std::min(count, kMaxFiles); ++i) {
    // Many columns may have no bytes.
    if (!unit_->file().budget().spend(columns.size())) break;
    const std::uint64_t start = cursor.offset();
    File file;
    for (const LineColumn& column : columns) {
      const AttributeValue value = read_value(cursor, column.form, header_.encoding);
      if (column.content == LineContent::path) file.name = value;
      if (column.content == LineContent::directory_index) file.directory = value.number;
    }
    if (cursor.failed() || cursor.offset() == start) break;
    files.push_back(file);
  }
  return files;
}

void LineProgram::read_old_files(ByteCursor& cursor) {
  const auto read_name = [&cursor] { return AttributeValue{DwarfForm::string, 0, cursor.string()}; };
  for (auto name = read_name(); !name.text.empty() && directories_.size() < kMaxFiles; name = read_name())
    directories_.push_back({name, 0});
  for (auto name = read_name(); !name.text.empty() && files_.size() < kMaxFiles; name = read_name()) {
    files_.push_back({name, cursor.uleb()});
    cursor.skip_leb();  // time of change
    cursor.skip_leb();  // size
  }
}

std::string_view LineProgram::directory_of(const File& file) const {
  if (header_.encoding.version < 5) {
    if (file.directory == 0 || file.directory > directories_.size()) return {};
    return unit_->string(directories_[file.directory - 1].name);
  }
  return file.directory < directories_.size() ? unit_->string(directories_[file.directory].name)
                                              : std::string_view();
}

std::string LineProgram::path(std::uint64_t number) const {
  const bool is_version_5 = header_.encoding.version >= 5;
  const std::uint64_t index = is_version_5 ? number : number - 1;
  if (index >= files_.size()) return {};
  const File& file = files_[index];
  const std::string_view name = unit_->string(file.name);
  if (name.starts_with('/') || name.empty()) return std::string(name);
  const std::string_view directory = directory_of(file);
  std::string path;
  const bool is_working_directory = is_version_5 && file.directory == 0;
  if (!directory.starts_with('/') && !is_working_directory)
    append_path(path, unit_->string(unit_->root().comp_dir));
  append_path(path, directory);
  append_path(path, name);
  return path.size() <= kMaxPathBytes ? path : std::string();
}

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

namespace {

// Rows come in ascending order within a sequence, so that one finger on the addresses moves along with them.
class LineMatcher {
 public:
  LineMatcher(std::span<const std::uint64_t> addresses, const CodeBounds& bounds, WorkBudget& budget)
      : addresses_(addresses), bounds_(bounds), budget_(budget), found_(addresses.size()) {}

  void take(const LineRow& row) {
    if (!is_inside_)
      start(row.address);
    else if (row.address > last_.address)
      give_last_line_until(row.address);
    else if (row.address < last_.address)
      find_address(row.address);
    last_ = row;
    is_inside_ = !row.ends_sequence;
  }
  std::vector<FoundLine> finish() && { return std::move(found_); }

 private:
  void start(std::uint64_t address) {
    // Of code that the linker threw away.
    is_ignored_ = address < bounds_.begin || address >= bounds_.end;
    find_address(address);
  }
  void find_address(std::uint64_t address) {
    at_ = static_cast<std::size_t>(std::lower_bound(addresses_.begin(), addresses_.end(), address) -
                                   addresses_.begin());
  }
  void give_last_line_until(std::uint64_t end) {
    for (; at_ < addresses_.size() && addresses_[at_] < end; ++at_) {
      if (!budget_.spend(1)) return;
      if (is_ignored_ || found_[at_].is_found) continue;
      found_[at_] = {last_.file, last_.line, last_.column, true};
    }
  }

  std::span<const std::uint64_t> addresses_;
  const CodeBounds& bounds_;
  WorkBudget& budget_;
  std::vector<FoundLine> found_;
  LineRow last_;
  std::size_t at_ = 0;
  bool is_inside_ = false;
  bool is_ignored_ = false;
};

}  // namespace

std::vector<FoundLine> find_lines(const LineProgram& program, std::span<const std::uint64_t> addresses,
                                  const CodeBounds& bounds, WorkBudget& budget) {
  LineMatcher matcher(addresses, bounds, budget);
  if (!budget.spend(program.instructions().size())) return std::move(matcher).finish();
  LineRows rows(program);
  while (const LineRow* row = rows.next()) matcher.take(*row);
  return std::move(matcher).finish();
}

}  // namespace ddprof
