#include <elf.h>

#include "elf/elf_file.hpp"
#include "elf/load.hpp"

namespace ddprof {

namespace {

ElfSymbol to_symbol(const Elf64_Sym& entry, std::span<const std::byte> names) {
  return {.name = load_bounded_string(names, entry.st_name, ElfFile::kMaxSymbolNameBytes),
          .value = entry.st_value,
          .size = entry.st_size,
          .type = static_cast<std::uint8_t>(ELF64_ST_TYPE(entry.st_info)),
          .binding = static_cast<std::uint8_t>(ELF64_ST_BIND(entry.st_info)),
          .section_index = entry.st_shndx};
}

}  // namespace

std::optional<ElfSymbolTable> ElfFile::find_symbol_table(SymbolTableKind kind) const {
  const std::uint32_t wanted = kind == SymbolTableKind::symtab ? SHT_SYMTAB : SHT_DYNSYM;
  for (std::size_t i = 1; i < section_count_; ++i) {
    const auto table = section_without_name(i);
    if (!table || table->type != wanted || table->data.empty()) continue;
    const auto names = section_without_name(table->link);
    return ElfSymbolTable{table->data, names ? names->data : std::span<const std::byte>{}};
  }
  return std::nullopt;
}

bool ElfFile::for_each_symbol(SymbolTableKind kind,
                              const std::function<void(const ElfSymbol&)>& callback) const {
  const auto table = find_symbol_table(kind);
  if (!table) return false;
  const std::size_t end = std::min<std::uint64_t>(table->entries.size(), kMaxSymbols * sizeof(Elf64_Sym));
  for (std::size_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= end; at += sizeof(Elf64_Sym))
    callback(to_symbol(*load<Elf64_Sym>(table->entries, at), table->names));
  return true;
}

}  // namespace ddprof
