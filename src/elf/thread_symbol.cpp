#include "elf/thread_symbol.hpp"

#include <elf.h>

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxThreadSlots = 16;  // one would do
// In all tables together: many section headers can mean the same one.
constexpr std::uint64_t kMaxRelocationBytes = std::uint64_t{64} << 20U;

struct FoundSymbol {
  std::uint64_t value = 0;
  std::uint32_t index = 0;
};

std::optional<FoundSymbol> find_defined(const ElfFile& elf, SymbolTableKind table, std::string_view name) {
  std::optional<FoundSymbol> found;
  std::uint32_t index = 0;
  elf.for_each_symbol(table, [&](const ElfSymbol& symbol) {
    ++index;
    if (found || symbol.type != STT_TLS || symbol.section_index == SHN_UNDEF || symbol.name != name) return;
    found = FoundSymbol{symbol.value, index};
  });
  return found;
}

const ElfSegment* find_thread_segment(const ElfFile& elf) {
  for (const ElfSegment& segment : elf.segments()) {
    if (segment.type == PT_TLS) return &segment;
  }
  return nullptr;
}

// Variant II: the blocks end at the thread pointer, that of the program first.
std::optional<std::int64_t> executable_offset(const ElfSegment& segment, std::uint64_t value) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;
  const std::uint64_t alignment = std::max<std::uint64_t>(segment.alignment, 1);
  if (segment.memsz > kMost || alignment > kMost || value > segment.memsz) return std::nullopt;
  const std::uint64_t block = (segment.memsz + alignment - 1) / alignment * alignment;
  return static_cast<std::int64_t>(value) - static_cast<std::int64_t>(block);
}

std::optional<ThreadSymbol::Slot::Kind> kind_of_slot(std::uint32_t relocation) {
  switch (relocation) {
    case R_X86_64_TLSDESC:
      return ThreadSymbol::Slot::Kind::descriptor;
    case R_X86_64_DTPMOD64:
      return ThreadSymbol::Slot::Kind::index;
    case R_X86_64_TPOFF64:
      return ThreadSymbol::Slot::Kind::offset;
    default:
      return std::nullopt;
  }
}

// By its symbol, or, where the linker bound it to the file, by its offset.
bool is_about(const Elf64_Rela& entry, const FoundSymbol& symbol) {
  const auto index = static_cast<std::uint32_t>(ELF64_R_SYM(entry.r_info));
  if (index == symbol.index) return entry.r_addend == 0;
  const bool is_by_offset = ELF64_R_TYPE(entry.r_info) != R_X86_64_DTPMOD64;
  return index == 0 && is_by_offset && static_cast<std::uint64_t>(entry.r_addend) == symbol.value;
}

void add_slots(const ElfSection& table, const FoundSymbol& symbol, std::vector<ThreadSymbol::Slot>& slots) {
  for (std::size_t at = 0; at + sizeof(Elf64_Rela) <= table.data.size() && slots.size() < kMaxThreadSlots;
       at += sizeof(Elf64_Rela)) {
    const auto entry = *load<Elf64_Rela>(table.data, at);
    const auto kind = kind_of_slot(static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info)));
    if (kind && is_about(entry, symbol)) slots.push_back({*kind, entry.r_offset});
  }
}

}  // namespace

std::optional<ThreadSymbol> find_thread_symbol(const ElfFile& elf, std::string_view name) {
  const ElfSegment* segment = find_thread_segment(elf);
  if (segment == nullptr || elf.architecture() != Architecture::x86_64) return std::nullopt;
  auto symbol = find_defined(elf, SymbolTableKind::dynsym, name);
  const bool is_dynamic = symbol.has_value();
  // A static program need not have the other table. Its numbers mean nothing to relocations.
  if (!is_dynamic && elf.type() == ElfType::executable)
    symbol = find_defined(elf, SymbolTableKind::symtab, name);
  if (!symbol) return std::nullopt;
  const auto offset = executable_offset(*segment, symbol->value);
  if (!offset) return std::nullopt;
  ThreadSymbol found{.offset = symbol->value, .executable_offset = *offset};
  std::uint64_t bytes_left = kMaxRelocationBytes;
  for (std::size_t i = 1; is_dynamic && i < elf.section_count(); ++i) {
    const auto section = elf.section(i);
    if (!section || section->type != SHT_RELA) continue;
    if (section->data.size() > bytes_left) break;
    bytes_left -= section->data.size();
    add_slots(*section, *symbol, found.slots);
  }
  return found;
}

}  // namespace ddprof
