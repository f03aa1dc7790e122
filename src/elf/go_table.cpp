#include "elf/go_table.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kMagic118 = 0xfffffff0;
constexpr std::uint32_t kMagic120 = 0xfffffff1;
constexpr std::size_t kMaxFunctions = 4'000'000;
// Of a section that is searched, and of all relocations together: several times those of the largest
// programs. Without a bound a sparse file makes a search as long as it likes, and many headers mean the same
// relocations.
constexpr std::uint64_t kMaxSearchedBytes = std::uint64_t{128} << 20U;

std::span<const std::byte> searched_part(const ElfSection& section) {
  return section.data.first(std::min<std::uint64_t>(section.data.size(), kMaxSearchedBytes));
}

// The header, behind its magic number (4 bytes), two zeros, the size of an instruction step and of a pointer:
// eight numbers of pointer size.
enum HeaderField : std::uint64_t {
  kFunctionCount = 8,
  kCodeStart = 24,
  kNames = 32,
  kUnits = 40,
  kFiles = 48,
  kSequences = 56,
  kFunctionTable = 64,
  kHeaderBytes = 72
};

// The runtime's data of its program (moduledata) begins with the address of the header and that of the names.
enum ModuleField : std::uint64_t {
  kModuleNames = 8,
  kModuleCode = 176,
  kFunctionData118 = 304,
  kFunctionData120 = 320
};

std::uint8_t step_of(const ElfFile& file) { return file.architecture() == Architecture::x86_64 ? 1 : 4; }

bool is_table(std::span<const std::byte> bytes, std::uint8_t step) {
  const auto magic = load<std::uint32_t>(bytes, 0);
  const bool is_known = magic == kMagic118 || magic == kMagic120;
  // Two zeros, steps, pointers of eight bytes.
  return is_known && bytes.size() >= kHeaderBytes &&
         load<std::uint32_t>(bytes, 4) == (0x08000000U | std::uint32_t{step} << 16U);
}

// Other linkers than Go's put it somewhere into their own sections.
std::optional<ElfRange> find_table_inside(const ElfSection& section, std::uint8_t step) {
  constexpr std::uint64_t kAlignment = 32;
  for (std::uint64_t at = 0; at + kHeaderBytes <= searched_part(section).size(); at += kAlignment) {
    if (is_table(section.data.subspan(at), step))
      return ElfRange{section.vaddr + at, section.data.subspan(at)};
  }
  return std::nullopt;
}

std::optional<ElfRange> find_table(const ElfFile& file) {
  const std::uint8_t step = step_of(file);
  for (const char* name : {".gopclntab", ".data.rel.ro.gopclntab"}) {
    const auto section = file.find_section(name);
    if (section && is_table(section->data, step)) return ElfRange{section->vaddr, section->data};
  }
  if (!file.find_section(".go.buildinfo")) return std::nullopt;
  for (const char* name : {".data.rel.ro", ".rodata"}) {
    const auto section = file.find_section(name);
    const auto table = section ? find_table_inside(*section, step) : std::nullopt;
    if (table) return table;
  }
  return std::nullopt;
}

// Calls take(address, value) for what the loader will write into a position-independent program, until it
// says true.
template <typename Take>
void for_each_relocation(const ElfFile& file, Take take) {
  const std::uint32_t relative =
      file.architecture() == Architecture::x86_64 ? R_X86_64_RELATIVE : R_AARCH64_RELATIVE;
  std::uint64_t bytes_left = kMaxSearchedBytes;
  for (std::size_t index = 0; index < file.section_count(); ++index) {
    const auto section = file.section(index);
    if (!section || section->type != SHT_RELA) continue;
    if (section->data.size() > bytes_left) return;
    bytes_left -= section->data.size();
    for (std::uint64_t at = 0; at < section->data.size(); at += sizeof(Elf64_Rela)) {
      const auto entry = load<Elf64_Rela>(section->data, at);
      if (entry && ELF64_R_TYPE(entry->r_info) == relative &&
          take(entry->r_offset, static_cast<std::uint64_t>(entry->r_addend)))
        return;
    }
  }
}

// The pointer at this address, as it will be at run time (less the bias); 0: none.
std::uint64_t pointer_at(const ElfFile& file, std::uint64_t address) {
  std::uint64_t value = load<std::uint64_t>(file.data_at(address), 0).value_or(0);
  if (value != 0) return value;
  for_each_relocation(file, [&](std::uint64_t at, std::uint64_t target) {
    if (at == address) value = target;
    return at == address;
  });
  return value;
}

bool is_module(const ElfFile& file, std::uint64_t address, std::uint64_t names) {
  return pointer_at(file, address + kModuleNames) == names;
}

// Address of the runtime's data of the program whose table is at `table`; 0: none.
std::uint64_t find_module(const ElfFile& file, std::uint64_t table, std::uint64_t names) {
  for (const char* name : {".go.module", ".noptrdata", ".data", ".data.rel.ro"}) {
    const auto section = file.find_section(name);
    if (!section) continue;
    for (std::uint64_t at = 0; at + kFunctionData120 + 8 <= searched_part(*section).size(); at += 8) {
      if (load<std::uint64_t>(section->data, at) == table &&
          load<std::uint64_t>(section->data, at + kModuleNames) == names)
        return section->vaddr + at;
    }
  }
  // A few pointers to the table are enough to look at: a program has one or two.
  constexpr std::size_t kMaxCandidates = 8;
  std::array<std::uint64_t, kMaxCandidates> candidates{};
  std::size_t count = 0;
  for_each_relocation(file, [&](std::uint64_t at, std::uint64_t target) {
    if (target == table) candidates[count++] = at;
    return count == kMaxCandidates;
  });
  for (std::size_t i = 0; i < count; ++i) {
    if (is_module(file, candidates[i], names)) return candidates[i];
  }
  return 0;
}

std::uint64_t code_start_of(const ElfFile& file, const ElfRange& table) {
  std::uint64_t start = *load<std::uint64_t>(table.data, kCodeStart);
  if (start == 0) start = pointer_at(file, table.vaddr + kCodeStart);
  if (start != 0) return start;
  // As of Go 1.26 the header does not say it.
  const std::uint64_t names = table.vaddr + *load<std::uint64_t>(table.data, kNames);
  const std::uint64_t module = find_module(file, table.vaddr, names);
  return module != 0 ? pointer_at(file, module + kModuleCode) : 0;
}

// A part of the table; they follow each other, so that each may reach to the end.
std::span<const std::byte> part_of(std::span<const std::byte> table, HeaderField field) {
  const std::uint64_t offset = *load<std::uint64_t>(table, field);
  return offset <= table.size() ? table.subspan(offset) : table.first(0);
}

std::optional<std::uint64_t> take_varint(std::span<const std::byte>& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (bytes.empty()) return std::nullopt;
    const auto byte = std::to_integer<std::uint64_t>(bytes.front());
    bytes = bytes.subspan(1);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

}  // namespace

std::optional<GoTable> GoTable::find(const ElfFile& file) {
  const auto found = find_table(file);
  if (!found) return std::nullopt;
  const std::span<const std::byte> data = found->data;
  GoTable table;
  table.address = found->vaddr;
  table.step = step_of(file);
  table.has_start_lines = load<std::uint32_t>(data, 0) == kMagic120;
  table.code_start = code_start_of(file, *found);
  table.names_address = found->vaddr + *load<std::uint64_t>(data, kNames);
  table.names = part_of(data, kNames);
  table.units = part_of(data, kUnits);
  table.files = part_of(data, kFiles);
  table.sequences = part_of(data, kSequences);
  table.functions = part_of(data, kFunctionTable);
  const std::uint64_t count = *load<std::uint64_t>(data, kFunctionCount);
  const bool is_whole =
      count <= kMaxFunctions && !slice_of(table.functions, 0, count * kEntryBytes + 4).empty();
  if (table.code_start == 0 || !is_whole) return std::nullopt;
  table.function_count = count;
  return table;
}

std::span<const std::byte> GoTable::find_function_data(const ElfFile& file) const {
  const std::uint64_t module = find_module(file, address, names_address);
  if (module == 0) return {};
  const std::uint64_t field = has_start_lines ? kFunctionData120 : kFunctionData118;
  return file.data_at(pointer_at(file, module + field));
}

std::uint64_t GoTable::begin_of(std::size_t index) const {
  return code_start + load<std::uint32_t>(functions, index * kEntryBytes).value_or(0);
}

GoSequence::GoSequence(const GoTable& table, std::uint32_t offset, std::uint64_t begin, std::uint64_t end)
    : left_(offset > 0 && offset < table.sequences.size() ? table.sequences.subspan(offset)
                                                          : table.sequences.first(0)),
      begin_(begin),
      next_begin_(begin),
      limit_(end),
      step_(table.step) {}

bool GoSequence::next() {
  if (next_begin_ >= limit_) return false;
  const auto change = take_varint(left_);
  if (!change || (*change == 0 && !is_first_)) return false;  // a zero ends the sequence
  const auto steps = take_varint(left_);
  if (!steps || *steps == 0) return false;
  is_first_ = false;
  // Signs are in the lowest bit.
  const auto signed_change =
      static_cast<std::int64_t>(*change >> 1) ^ -static_cast<std::int64_t>(*change & 1);
  const std::int64_t changed = value_ + signed_change;
  if (changed < -1 || changed > std::numeric_limits<std::int32_t>::max()) return false;
  value_ = static_cast<std::int32_t>(changed);
  begin_ = next_begin_;
  next_begin_ += *steps * step_;
  return true;
}

namespace {

// A description: offset of the code, of the name, size of arguments, offset of the deferred return, of the
// sequences of stack sizes, files, lines; count of further sequences; unit; as of 1.20 the first line; kind,
// flags.
constexpr std::uint64_t kNameField = 4;
constexpr std::uint64_t kStackSizesField = 16;
constexpr std::uint64_t kFlagsField118 = 37;
constexpr std::uint64_t kFlagsField120 = 41;
constexpr std::uint8_t kFlagOutermost = 1;
constexpr std::uint8_t kFlagMovesStack = 2;

// Functions that run another one on the system stack and return. Assembly, the same in all versions so far.
bool keeps_frame_pointer(std::span<const std::byte> names, std::uint64_t name) {
  for (std::string_view known : {"runtime.systemstack", "runtime.asmcgocall"}) {
    const auto text = name < names.size() ? names.subspan(name) : std::span<const std::byte>{};
    if (text.size() > known.size() && std::memcmp(text.data(), known.data(), known.size()) == 0 &&
        (text[known.size()] == std::byte{0} || text[known.size()] == std::byte{'.'}))
      return true;
  }
  return false;
}

}  // namespace

std::optional<GoFunctions> GoFunctions::find(const ElfFile& file) {
  if (file.architecture() != Architecture::x86_64) return std::nullopt;
  const auto table = GoTable::find(file);
  if (!table) return std::nullopt;
  return GoFunctions(*table);
}

std::optional<GoFunctions::Function> GoFunctions::function(std::size_t index) const {
  const auto description = load<std::uint32_t>(table_.functions, index * GoTable::kEntryBytes + 4);
  const std::uint64_t at = description.value_or(0);
  const auto sizes = load<std::uint32_t>(table_.functions, at + kStackSizesField);
  const auto flags =
      load<std::uint8_t>(table_.functions, at + (table_.has_start_lines ? kFlagsField120 : kFlagsField118));
  if (!description || !sizes || !flags) return std::nullopt;
  Function function{.begin = begin_of(index), .end = begin_of(index + 1)};
  if (function.end <= function.begin) return std::nullopt;
  function.is_outermost = (*flags & kFlagOutermost) != 0;
  function.moves_stack = (*flags & kFlagMovesStack) != 0;
  function.keeps_frame_pointer =
      function.moves_stack &&
      keeps_frame_pointer(table_.names, load<std::uint32_t>(table_.functions, at + kNameField).value_or(0));
  function.stack_sizes = *sizes;
  return function;
}

}  // namespace ddprof
