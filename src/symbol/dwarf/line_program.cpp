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

}  // namespace ddprof
