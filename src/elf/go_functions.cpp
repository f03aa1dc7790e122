#include "elf/go_functions.hpp"

#include <elf.h>

#include <algorithm>
#include <limits>

#include "elf/load.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kMagic118 = 0xfffffff0;
constexpr std::uint32_t kMagic120 = 0xfffffff1;
constexpr std::size_t kMaxFunctions = 4'000'000;

// The header, behind its magic number (4 bytes), two zeros, the size of an instruction step and of a pointer:
// eight numbers of pointer size.
enum HeaderField : std::uint64_t {
  kFunctionCount = 8,
  kCodeStart = 24,
  kSequences = 56,
  kFunctionTable = 64,
  kHeaderBytes = 72
};

constexpr std::uint64_t kEntryBytes = 8;  // offset of the code, offset of the description

// A description: offset of the code, of the name, size of arguments, offset of the deferred return, of the
// sequences of stack sizes, files, lines; count of further sequences; unit; as of 1.20 the first line; kind,
// flags.
constexpr std::uint64_t kStackSizesField = 16;
constexpr std::uint64_t kFlagsField118 = 37;
constexpr std::uint64_t kFlagsField120 = 41;
constexpr std::uint8_t kFlagOutermost = 1;
constexpr std::uint8_t kFlagMovesStack = 2;

std::optional<std::uint32_t> version_of(std::span<const std::byte> table) {
  constexpr std::uint32_t kStepAndPointer = 0x08010000;  // two zeros, steps of one byte, pointers of eight
  const auto magic = load<std::uint32_t>(table, 0);
  const bool is_known = magic == kMagic118 || magic == kMagic120;
  if (!is_known || table.size() < kHeaderBytes || load<std::uint32_t>(table, 4) != kStepAndPointer)
    return std::nullopt;
  return magic;
}

// Other linkers than Go's put it somewhere into their own sections.
std::optional<ElfRange> find_table_inside(const ElfSection& section) {
  constexpr std::uint64_t kAlignment = 32;
  for (std::uint64_t at = 0; at + kHeaderBytes <= section.data.size(); at += kAlignment) {
    if (version_of(section.data.subspan(at))) return ElfRange{section.vaddr + at, section.data.subspan(at)};
  }
  return std::nullopt;
}

std::optional<ElfRange> find_table(const ElfFile& file) {
  for (const char* name : {".gopclntab", ".data.rel.ro.gopclntab"}) {
    const auto section = file.find_section(name);
    if (section && version_of(section->data)) return ElfRange{section->vaddr, section->data};
  }
  if (!file.find_section(".go.buildinfo")) return std::nullopt;
  for (const char* name : {".data.rel.ro", ".rodata"}) {
    const auto section = file.find_section(name);
    const auto table = section ? find_table_inside(*section) : std::nullopt;
    if (table) return table;
  }
  return std::nullopt;
}

// What the loader will write at this address of a position-independent program.
std::optional<std::uint64_t> relocated_value(const ElfFile& file, std::uint64_t address) {
  for (std::size_t index = 0; index < file.section_count(); ++index) {
    const auto section = file.section(index);
    if (!section || section->type != SHT_RELA) continue;
    for (std::uint64_t at = 0; at < section->data.size(); at += sizeof(Elf64_Rela)) {
      const auto entry = load<Elf64_Rela>(section->data, at);
      if (entry && entry->r_offset == address && ELF64_R_TYPE(entry->r_info) == R_X86_64_RELATIVE)
        return static_cast<std::uint64_t>(entry->r_addend);
    }
  }
  return std::nullopt;
}

std::optional<std::uint64_t> take_number(std::span<const std::byte>& bytes) {
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

std::optional<GoFunctions> GoFunctions::find(const ElfFile& file) {
  if (file.architecture() != Architecture::x86_64) return std::nullopt;
  const auto found = find_table(file);
  if (!found) return std::nullopt;
  const std::span<const std::byte> data = found->data;
  GoFunctions functions;
  functions.has_start_lines_ = version_of(data) == kMagic120;
  functions.code_start_ = *load<std::uint64_t>(data, kCodeStart);
  if (functions.code_start_ == 0)
    functions.code_start_ = relocated_value(file, found->vaddr + kCodeStart).value_or(0);
  if (functions.code_start_ == 0) return std::nullopt;
  const std::uint64_t sequences = *load<std::uint64_t>(data, kSequences);
  const std::uint64_t table = *load<std::uint64_t>(data, kFunctionTable);
  const std::uint64_t count = *load<std::uint64_t>(data, kFunctionCount);
  if (sequences > data.size() || table > data.size()) return std::nullopt;
  functions.size_bytes_ = data.subspan(sequences);
  functions.table_ = data.subspan(table);
  if (count > kMaxFunctions || slice_of(functions.table_, 0, count * kEntryBytes + 4).empty())
    return std::nullopt;
  functions.count_ = count;
  return functions;
}

std::uint64_t GoFunctions::begin_of(std::size_t index) const {
  return code_start_ + load<std::uint32_t>(table_, index * kEntryBytes).value_or(0);
}

std::optional<GoFunctions::Function> GoFunctions::function(std::size_t index) const {
  const auto description = load<std::uint32_t>(table_, index * kEntryBytes + 4);
  const auto sizes = load<std::uint32_t>(table_, std::uint64_t{description.value_or(0)} + kStackSizesField);
  const auto flags = load<std::uint8_t>(
      table_, std::uint64_t{description.value_or(0)} + (has_start_lines_ ? kFlagsField120 : kFlagsField118));
  if (!description || !sizes || !flags) return std::nullopt;
  Function function{.begin = begin_of(index), .end = begin_of(index + 1)};
  if (function.end <= function.begin) return std::nullopt;
  function.is_outermost = (*flags & kFlagOutermost) != 0;
  function.moves_stack = (*flags & kFlagMovesStack) != 0;
  function.stack_sizes = *sizes;
  return function;
}

GoFunctions::StackSizes::StackSizes(std::span<const std::byte> all, const Function& function)
    : left(function.stack_sizes > 0 && function.stack_sizes < all.size() ? all.subspan(function.stack_sizes)
                                                                         : all.first(0)),
      next_begin(function.begin),
      end(function.end) {}

bool GoFunctions::StackSizes::next() {
  if (next_begin >= end) return false;
  const auto change = take_number(left);
  if (!change || (*change == 0 && !is_first)) return false;  // a zero ends the sequence
  const auto length = take_number(left);
  if (!length || *length == 0) return false;
  is_first = false;
  // Signs are in the lowest bit.
  const auto signed_change =
      static_cast<std::int64_t>(*change >> 1) ^ -static_cast<std::int64_t>(*change & 1);
  const std::int64_t changed = bytes + signed_change;
  if (changed < 0 || changed > std::numeric_limits<std::int32_t>::max()) return false;
  bytes = static_cast<std::int32_t>(changed);
  begin = next_begin;
  next_begin += *length;
  return true;
}

}  // namespace ddprof
