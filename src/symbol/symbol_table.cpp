#include "symbol/symbol_table.hpp"

#include <absl/container/flat_hash_map.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/turns.hpp"
#include "elf/byte_cursor.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

namespace {

// No function is this large; such sizes come from broken or hostile files.
constexpr std::uint64_t kMaxFunctionBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

struct CodeRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// Where code can be: by section index, and by segment for files whose section headers do not tell.
class CodeRanges {
 public:
  explicit CodeRanges(const ElfFile& file) {
    sections_.resize(file.section_count());
    for (std::size_t index = 0; index < sections_.size(); ++index) {
      const std::optional<ElfSection> section = file.section(index);
      if (section && (section->flags & SHF_EXECINSTR) != 0)
        sections_[index] = bounded(section->vaddr, section->size);
    }
    for (const ElfSegment& segment : file.segments()) {
      if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0) {
        segments_.push_back(bounded(segment.vaddr, segment.memsz));
      }
    }
  }

  // The code that the symbol's section holds; none when that is data.
  [[nodiscard]] std::optional<CodeRange> find(const Elf64_Sym& symbol) const {
    if (symbol.st_shndx < sections_.size()) return holding(sections_[symbol.st_shndx], symbol.st_value);
    if (symbol.st_shndx == SHN_ABS || symbol.st_shndx == SHN_COMMON) return std::nullopt;
    for (const CodeRange& segment : segments_) {
      if (const auto range = holding(segment, symbol.st_value)) return range;
    }
    return std::nullopt;
  }

 private:
  static CodeRange bounded(std::uint64_t start, std::uint64_t size) {
    return {start, size > ~start ? ~std::uint64_t{0} : start + size};
  }
  static std::optional<CodeRange> holding(CodeRange range, std::uint64_t address) {
    return address >= range.start && address < range.end ? std::optional(range) : std::nullopt;
  }

  std::vector<CodeRange> sections_;  // empty ranges for data
  std::vector<CodeRange> segments_;
};

// A symbol that may name code, before aliases and overlaps are settled.
struct SymbolCandidate {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  bool is_local = false;
  bool is_stub = false;
};

// Linkers write no more than a few: what a file makes of nothing else is not searched each time.
std::size_t leading_underscores(std::string_view name) {
  constexpr std::size_t kMost = 16;
  return std::min({name.substr(0, kMost).find_first_not_of('_'), name.size(), kMost});
}

// By place, and among aliases the best name first: what others link against before what is private to a file,
// the plain name before its underscored twins, then the shorter one.
bool comes_before(const SymbolCandidate& left, const SymbolCandidate& right) {
  rest_point_among_many();
  const auto rank = [](const SymbolCandidate& symbol) {
    return std::tuple(symbol.start, ~symbol.size, symbol.is_stub, symbol.is_local,
                      leading_underscores(symbol.name), symbol.name.size(), symbol.name);
  };
  return rank(left) < rank(right);
}

// Those of 32-bit files have the same fields in other sizes.
std::optional<Elf64_Sym> symbol_at(const ElfSymbolTable& table, std::uint64_t index) {
  if (table.entry_bytes == sizeof(Elf64_Sym))
    return load<Elf64_Sym>(table.entries, index * sizeof(Elf64_Sym));
  const auto narrow = load<Elf32_Sym>(table.entries, index * sizeof(Elf32_Sym));
  if (!narrow) return std::nullopt;
  return Elf64_Sym{.st_name = narrow->st_name,
                   .st_info = narrow->st_info,
                   .st_other = narrow->st_other,
                   .st_shndx = narrow->st_shndx,
                   .st_value = narrow->st_value,
                   .st_size = narrow->st_size};
}

// Labels that assemblers and annotation tools leave behind: ".L12", ".annobin_x", and aarch64's "$x".
bool is_label(std::string_view name) { return name.empty() || name.front() == '.' || name.front() == '$'; }

bool may_name_code(const Elf64_Sym& symbol) {
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && symbol.st_size <= kMaxFunctionBytes &&
         (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

// Collects the symbols of a file that cover some of the addresses.
class Search {
 public:
  Search(const ElfFile& file, std::span<const std::uint64_t> addresses, std::size_t max_symbols)
      : code_(file), addresses_(addresses), gaps_(addresses.size() + 1), max_symbols_(max_symbols) {}

  // Without .symtab most functions are missing, and "up to the next symbol" would name strangers.
  void read(const ElfSymbolTable& table, bool may_be_unsized) {
    for (std::uint64_t index = 1; index < table.size(); ++index) {
      rest_point_among_many();
      const Elf64_Sym symbol = *symbol_at(table, index);
      if (!may_name_code(symbol)) continue;
      const std::optional<CodeRange> range = code_.find(symbol);
      if (!range) continue;
      if (symbol.st_size != 0)
        add_sized(symbol, std::min(symbol.st_size, range->end - symbol.st_value), table.names);
      else if (may_be_unsized)
        add_unsized(symbol, range->end, table.names);
    }
  }
  void add(const SymbolCandidate& symbol) { covering_.push_back(symbol); }
  [[nodiscard]] bool has_too_many() const { return covering_.size() > max_symbols_; }

  std::vector<Symbol> finish() && {
    std::vector<Symbol> found(addresses_.size());
    take_unsized(found);
    take_covering(found);
    return found;
  }

 private:
  // What begins behind one of the addresses, and not behind the next.
  struct Gap {
    std::uint64_t first_start = kNowhere;
    std::uint64_t sized_end = 0;     // the last
    SymbolCandidate last_unsized{};  // nameless: there is none
    std::uint64_t section_end = 0;   // of that
  };

  static SymbolCandidate candidate(const Elf64_Sym& symbol, std::uint64_t size,
                                   std::span<const std::byte> names) {
    return {.start = symbol.st_value,
            .size = size,
            .name = load_bounded_string(names, symbol.st_name, ElfFile::kMaxSymbolNameBytes),
            .is_local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL};
  }

  // Symbols come nearly in the order of their addresses: most are in the gap of the one before.
  [[nodiscard]] std::size_t gap_of(std::uint64_t start) {
    const bool is_same = (last_gap_ == 0 || addresses_[last_gap_ - 1] < start) &&
                         (last_gap_ == addresses_.size() || start <= addresses_[last_gap_]);
    if (is_same) return last_gap_;
    const auto next = std::lower_bound(addresses_.begin(), addresses_.end(), start);
    return last_gap_ = static_cast<std::size_t>(next - addresses_.begin());
  }

  void add_sized(const Elf64_Sym& symbol, std::uint64_t size, std::span<const std::byte> names) {
    const std::size_t next = gap_of(symbol.st_value);
    Gap& gap = gaps_[next];
    gap.first_start = std::min(gap.first_start, symbol.st_value);
    gap.sized_end = std::max(gap.sized_end, symbol.st_value + size);
    const bool covers = next < addresses_.size() && addresses_[next] - symbol.st_value < size;
    if (!covers || has_too_many()) return;
    const SymbolCandidate known = candidate(symbol, size, names);
    if (!is_label(known.name)) covering_.push_back(known);
  }

  void add_unsized(const Elf64_Sym& symbol, std::uint64_t section_end, std::span<const std::byte> names) {
    const SymbolCandidate known = candidate(symbol, 0, names);
    if (is_label(known.name)) return;
    Gap& gap = gaps_[gap_of(symbol.st_value)];
    gap.first_start = std::min(gap.first_start, symbol.st_value);
    const SymbolCandidate& last = gap.last_unsized;
    if (!last.name.empty() && known.start < last.start) return;
    if (!last.name.empty() && known.start == last.start && !comes_before(known, last)) return;
    gap.last_unsized = known;
    gap.section_end = section_end;
  }

  // Sizes that the file leaves open (hand-written assembly) reach to the next symbol or the end of the
  // section. What begins inside of a sized symbol is a label.
  void take_unsized(std::vector<Symbol>& found) const {
    std::vector<std::uint64_t> next_start(addresses_.size(), kNowhere);
    for (std::size_t at = addresses_.size(); at-- > 0;) {
      const std::uint64_t after = at + 1 < addresses_.size() ? next_start[at + 1] : kNowhere;
      next_start[at] = std::min(after, gaps_[at + 1].first_start);
    }
    std::uint64_t covered_to = 0;
    const Gap* last = nullptr;
    for (std::size_t at = 0; at < addresses_.size(); ++at) {
      covered_to = std::max(covered_to, gaps_[at].sized_end);
      if (!gaps_[at].last_unsized.name.empty()) last = &gaps_[at];
      if (last == nullptr || last->last_unsized.start < covered_to) continue;
      const std::uint64_t start = last->last_unsized.start;
      const std::uint64_t size =
          std::min(std::min(last->section_end, next_start[at]) - start, kMaxFunctionBytes);
      if (addresses_[at] - start < size) found[at] = {last->last_unsized.name, start, size};
    }
  }

  // Where symbols overlap, the one that starts later (the inner one) has it.
  void take_covering(std::vector<Symbol>& found) {
    std::sort(covering_.begin(), covering_.end(), comes_before);
    const auto is_alias = [](const SymbolCandidate& left, const SymbolCandidate& right) {
      return left.start == right.start && left.size == right.size;
    };
    covering_.erase(std::unique(covering_.begin(), covering_.end(), is_alias), covering_.end());
    std::vector<const SymbolCandidate*> open;  // innermost last
    std::size_t next = 0;
    for (std::size_t at = 0; at < addresses_.size(); ++at) {
      for (; next < covering_.size() && covering_[next].start <= addresses_[at]; ++next)
        open.push_back(&covering_[next]);
      while (!open.empty() && addresses_[at] - open.back()->start >= open.back()->size) open.pop_back();
      if (open.empty()) continue;
      const SymbolCandidate& symbol = *open.back();
      found[at] = {symbol.name, symbol.start, symbol.size, symbol.is_stub};
    }
  }

  CodeRanges code_;
  std::span<const std::uint64_t> addresses_;
  std::vector<Gap> gaps_;  // the last is behind all addresses
  std::vector<SymbolCandidate> covering_;
  std::size_t max_symbols_;
  std::size_t last_gap_ = 0;
};

// --- The procedure linkage table (x86-64 and i386): each entry is a jump through a slot that a relocation
// names.

struct Stub {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t slot = 0;  // of the global offset table
};

// The slot that a stub jumps through, by an instruction that may follow an endbr64 and a bnd prefix:
// "jmp *offset(%rip)" (ff 25); on i386 "jmp *slot" (ff 25), or "jmp *offset(%ebx)" (ff a3), where ebx is the
// global offset table.
std::optional<std::uint64_t> jump_slot(std::span<const std::byte> stub, std::uint64_t address,
                                       std::optional<std::uint64_t> table_of_i386) {
  for (std::uint64_t at = 0; at + 6 <= stub.size() && at <= 5; ++at) {
    if (stub[at] != std::byte{0xff}) continue;
    const auto offset = *load<std::uint32_t>(stub, at + 2);
    if (table_of_i386) {
      if (stub[at + 1] == std::byte{0x25}) return offset;
      if (stub[at + 1] == std::byte{0xa3}) return static_cast<std::uint32_t>(*table_of_i386 + offset);
      continue;
    }
    if (stub[at + 1] != std::byte{0x25}) continue;
    return address + at + 6 + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(offset)});
  }
  return std::nullopt;
}

std::optional<std::uint64_t> offset_table_of_i386(const ElfFile& file) {
  if (!file.is_32_bit()) return std::nullopt;
  auto section = file.find_section(".got.plt");
  if (!section) section = file.find_section(".got");
  return section ? section->vaddr : 0;
}

std::vector<Stub> stubs_at(const ElfFile& file, std::span<const std::uint64_t> addresses) {
  std::vector<Stub> stubs;
  const auto table_of_i386 = offset_table_of_i386(file);
  for (const char* name : {".plt", ".plt.sec", ".plt.got"}) {
    const auto section = file.find_section(name);
    if (!section) continue;
    const std::uint64_t size = section->entry_size == 8 ? 8 : 16;
    auto address = std::lower_bound(addresses.begin(), addresses.end(), section->vaddr);
    for (; address != addresses.end() && *address - section->vaddr < section->data.size(); ++address) {
      const std::uint64_t at = (*address - section->vaddr) / size * size;
      const std::uint64_t start = section->vaddr + at;
      if (!stubs.empty() && stubs.back().start == start) continue;
      if (const auto slot = jump_slot(slice_of(section->data, at, size), start, table_of_i386))
        stubs.push_back({start, size, *slot});
    }
  }
  return stubs;
}

struct Relocation {
  std::uint64_t offset = 0;
  std::uint64_t symbol = 0;
  std::uint32_t type = 0;
  std::uint64_t addend = 0;
};

Relocation relocation_at(std::span<const std::byte> relocations, std::uint64_t at) {
  const auto entry = *load<Elf64_Rela>(relocations, at);
  return {entry.r_offset, ELF64_R_SYM(entry.r_info), static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info)),
          static_cast<std::uint64_t>(entry.r_addend)};
}

// Its addend is in the slot itself.
Relocation relocation_of_i386(const ElfFile& file, std::span<const std::byte> relocations, std::uint64_t at) {
  const auto entry = *load<Elf32_Rel>(relocations, at);
  Relocation relocation{entry.r_offset, ELF32_R_SYM(entry.r_info), ELF32_R_TYPE(entry.r_info), 0};
  if (relocation.type == R_386_IRELATIVE)
    relocation.addend = load<std::uint32_t>(file.data_at(entry.r_offset), 0).value_or(0);
  return relocation;
}

// Which function each slot of some stubs will hold.
class SlotNames {
 public:
  SlotNames(const ElfFile& file, const ElfSymbolTable& symbols, std::span<const Stub> stubs,
            const ReadLimits& limits)
      : file_(file), symbols_(symbols) {
    for (const Stub& stub : stubs) slots_.try_emplace(stub.slot);
    const bool is_32_bit = file.is_32_bit();
    for (const char* name : {is_32_bit ? ".rel.plt" : ".rela.plt", is_32_bit ? ".rel.dyn" : ".rela.dyn"}) {
      const auto relocations = file.find_section(name);
      if (relocations && relocations->data.size() <= limits.bytes()) read(relocations->data);
    }
    if (!choosers_.empty()) read_choosers();
  }

  // Empty when it is not known.
  [[nodiscard]] std::string_view name_of(const Stub& stub) const {
    const Slot& slot = slots_.find(stub.slot)->second;
    return slot.chooser ? choosers_.find(*slot.chooser)->second : slot.name;
  }

 private:
  struct Slot {
    std::string_view name;
    std::optional<std::uint64_t> chooser;  // a function that chooses at run time which one it will hold
  };

  void read(std::span<const std::byte> relocations) {
    const bool is_32_bit = file_.is_32_bit();
    const std::uint64_t bytes = is_32_bit ? sizeof(Elf32_Rel) : sizeof(Elf64_Rela);
    for (std::uint64_t at = 0; at + bytes <= relocations.size(); at += bytes) {
      rest_point_among_many();
      const Relocation entry =
          is_32_bit ? relocation_of_i386(file_, relocations, at) : relocation_at(relocations, at);
      const bool has_chooser = entry.type == (is_32_bit ? R_386_IRELATIVE : R_X86_64_IRELATIVE);
      // The numbers of these two are the same on i386.
      if (!has_chooser && entry.type != R_X86_64_JUMP_SLOT && entry.type != R_X86_64_GLOB_DAT) continue;
      const auto known = slots_.find(entry.offset);
      if (known == slots_.end() || known->second.chooser || !known->second.name.empty()) continue;
      if (has_chooser) {
        known->second.chooser = entry.addend;
        choosers_.try_emplace(entry.addend);
      } else if (const auto symbol = symbol_at(symbols_, entry.symbol)) {
        known->second.name = text_of(*symbol);
      }
    }
  }

  void read_choosers() {
    for (std::uint64_t index = 1; index < symbols_.size(); ++index) {
      rest_point_among_many();
      const Elf64_Sym symbol = *symbol_at(symbols_, index);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC || symbol.st_shndx == SHN_UNDEF) continue;
      const auto known = choosers_.find(symbol.st_value);
      if (known == choosers_.end()) continue;
      const std::string_view name = text_of(symbol);
      if (known->second.empty() || (known->second.starts_with('_') && !name.starts_with('_')))
        known->second = name;
    }
  }

  [[nodiscard]] std::string_view text_of(const Elf64_Sym& symbol) const {
    return load_bounded_string(symbols_.names, symbol.st_name, ElfFile::kMaxSymbolNameBytes);
  }

  const ElfFile& file_;
  ElfSymbolTable symbols_;
  absl::flat_hash_map<std::uint64_t, Slot> slots_;                 // by address
  absl::flat_hash_map<std::uint64_t, std::string_view> choosers_;  // their names, by address
};

void add_stubs(const ElfFile& file, std::span<const std::uint64_t> addresses, const ReadLimits& limits,
               Search& search) {
  if (file.architecture() == Architecture::aarch64) return;
  const std::vector<Stub> stubs = stubs_at(file, addresses);
  const auto symbols = file.find_symbol_table(SymbolTableKind::dynsym);
  if (stubs.empty() || !symbols) return;
  const SlotNames names(file, *symbols, stubs, limits);
  for (const Stub& stub : stubs) {
    if (const std::string_view name = names.name_of(stub); !name.empty())
      search.add({.start = stub.start, .size = stub.size, .name = name, .is_stub = true});
  }
}

}  // namespace

Result<std::vector<Symbol>> find_symbols(const ElfFile& file, std::span<const std::uint64_t> addresses,
                                         const ReadLimits& limits) {
  Search search(file, addresses, limits.count(sizeof(SymbolCandidate), 1));
  std::uint64_t table_bytes = 0;
  std::uint64_t table_size = 0;
  for (const SymbolTableKind kind : {SymbolTableKind::symtab, SymbolTableKind::dynsym}) {
    const auto table = file.find_symbol_table(kind);
    if (!table) continue;
    table_bytes += table->entries.size();
    table_size += table->size();
    if (table_size <= ElfFile::kMaxSymbols) search.read(*table, kind == SymbolTableKind::symtab);
  }
  if (search.has_too_many() || table_size > ElfFile::kMaxSymbols)
    return limits.too_large("read symbol table", table_bytes);
  add_stubs(file, addresses, limits, search);
  return std::move(search).finish();
}

}  // namespace ddprof
