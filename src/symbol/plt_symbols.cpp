#include <absl/container/flat_hash_map.h>
#include <elf.h>

#include <algorithm>

#include "elf/elf_file.hpp"
#include "elf/load.hpp"
#include "symbol/symbol_candidate.hpp"

namespace ddprof {

namespace {

using SlotNames = absl::flat_hash_map<std::uint64_t, std::string_view>;

// Which function each slot of the global offset table will hold.
SlotNames slot_names(const ElfFile& file, const ReadLimits& limits) {
  constexpr std::size_t kSlotBytes = 64;  // a place in the table, which doubles when it is full
  const std::size_t max_slots = limits.count(kSlotBytes, 4);
  const auto table = file.find_symbol_table(SymbolTableKind::dynsym);
  if (!table || table->entries.size() / sizeof(Elf64_Sym) > max_slots) return {};
  std::vector<std::string_view> symbols{std::string_view()};
  file.for_each_symbol(SymbolTableKind::dynsym,
                       [&](const ElfSymbol& symbol) { symbols.push_back(symbol.name); });
  SlotNames slots;
  for (const char* name : {".rela.plt", ".rela.dyn"}) {
    const auto relocations = file.find_section(name);
    if (!relocations || relocations->data.size() > limits.bytes()) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= relocations->data.size();
         at += sizeof(Elf64_Rela)) {
      const auto entry = *load<Elf64_Rela>(relocations->data, at);
      const auto type = ELF64_R_TYPE(entry.r_info);
      const std::uint64_t symbol = ELF64_R_SYM(entry.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      if (slots.size() >= max_slots) return {};
      if (symbol < symbols.size() && !symbols[symbol].empty()) slots.emplace(entry.r_offset, symbols[symbol]);
    }
  }
  return slots;
}

// The slot that a stub jumps through: the operand of its "jmp *offset(%rip)" (ff 25), which may follow an
// endbr64 and a bnd prefix.
std::optional<std::uint64_t> jump_slot(std::span<const std::byte> stub, std::uint64_t address) {
  for (std::uint64_t at = 0; at + 6 <= stub.size() && at <= 5; ++at) {
    if (stub[at] != std::byte{0xff} || stub[at + 1] != std::byte{0x25}) continue;
    const auto offset = *load<std::int32_t>(stub, at + 2);
    return address + at + 6 + static_cast<std::uint64_t>(std::int64_t{offset});
  }
  return std::nullopt;
}

}  // namespace

std::vector<SymbolCandidate> plt_symbols(const ElfFile& file, const ReadLimits& limits) {
  std::vector<SymbolCandidate> symbols;
  if (file.architecture() != Architecture::x86_64) return symbols;
  const SlotNames slots = slot_names(file, limits);
  if (slots.empty()) return symbols;
  for (const char* name : {".plt", ".plt.sec", ".plt.got"}) {
    const auto section = file.find_section(name);
    const std::uint64_t stub_size = section && section->entry_size == 8 ? 8 : 16;
    if (!section || section->data.size() / stub_size > limits.count(sizeof(SymbolCandidate), 4)) continue;
    for (std::uint64_t at = 0; at + stub_size <= section->data.size(); at += stub_size) {
      const auto slot = jump_slot(section->data.subspan(at, stub_size), section->vaddr + at);
      if (!slot) continue;
      const auto found = slots.find(*slot);
      if (found == slots.end()) continue;
      symbols.push_back(
          {.start = section->vaddr + at, .size = stub_size, .name = found->second, .is_plt = true});
    }
  }
  return symbols;
}

}  // namespace ddprof
