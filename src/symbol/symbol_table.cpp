#include "symbol/symbol_table.hpp"

#include <absl/container/flat_hash_map.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/turns.hpp"
#include "elf/byte_cursor.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

class ElfFile;

// A symbol that may name code, before aliases and overlaps are settled. `name` points into the ELF image.
struct SymbolCandidate {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;
  bool is_local = false;
  bool is_plt = false;  // a jump through the linkage table to `name`
};

// The code symbols of .symtab and .dynsym. Sizes that the file leaves open (hand-written assembly) reach to
// the next symbol or the end of the section. Fails with `exhausted` when they are too many: the next symbol
// of some would be missing.
Result<std::vector<SymbolCandidate>> code_symbols(const ElfFile& file, const ReadLimits& limits);

// The entries of the procedure linkage table (x86-64): each is a jump through a slot that a relocation names.
std::vector<SymbolCandidate> plt_symbols(const ElfFile& file, const ReadLimits& limits);

namespace {

// No function is this large; such sizes come from broken or hostile files.
constexpr std::uint64_t kMaxFunctionBytes = std::uint64_t{1} << 30;

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
  [[nodiscard]] std::optional<CodeRange> find(const ElfSymbol& symbol) const {
    if (symbol.section_index < sections_.size())
      return holding(sections_[symbol.section_index], symbol.value);
    if (symbol.section_index == SHN_ABS || symbol.section_index == SHN_COMMON) return std::nullopt;
    for (const CodeRange& segment : segments_) {
      if (const auto range = holding(segment, symbol.value)) return range;
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

bool is_function(const ElfSymbol& symbol) { return symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC; }

// Labels that assemblers and annotation tools leave behind: ".L12", ".annobin_x", and aarch64's "$x".
bool is_label(std::string_view name) { return name.empty() || name.front() == '.' || name.front() == '$'; }

struct Unsized {
  SymbolCandidate symbol;
  std::uint64_t section_end = 0;
};

// Gives symbols without a size the room up to the next symbol. Those inside of a sized one are labels:
// dropped.
void add_unsized(std::vector<SymbolCandidate>& sized, std::vector<Unsized>& open) {
  const auto by_start = [](const SymbolCandidate& left, const SymbolCandidate& right) {
    return left.start < right.start;
  };
  std::sort(sized.begin(), sized.end(), by_start);
  std::sort(open.begin(), open.end(),
            [&](const Unsized& left, const Unsized& right) { return by_start(left.symbol, right.symbol); });
  std::vector<SymbolCandidate> bounded;
  std::uint64_t covered_to = 0;
  std::size_t next_sized = 0;
  std::size_t next_other = 0;  // the first of `open` that starts later
  for (std::size_t at = 0; at < open.size(); ++at) {
    SymbolCandidate symbol = open[at].symbol;
    for (; next_sized < sized.size() && sized[next_sized].start <= symbol.start; ++next_sized) {
      covered_to = std::max(covered_to, sized[next_sized].start + sized[next_sized].size);
    }
    if (symbol.start < covered_to) continue;
    std::uint64_t end = open[at].section_end;
    if (next_sized < sized.size()) end = std::min(end, sized[next_sized].start);
    // Aliases at the same place share the room.
    while (next_other < open.size() && open[next_other].symbol.start <= symbol.start) ++next_other;
    if (next_other < open.size()) end = std::min(end, open[next_other].symbol.start);
    symbol.size = std::min(end - symbol.start, kMaxFunctionBytes);
    bounded.push_back(symbol);
  }
  sized.insert(sized.end(), bounded.begin(), bounded.end());
}

}  // namespace

Result<std::vector<SymbolCandidate>> code_symbols(const ElfFile& file, const ReadLimits& limits) {
  std::uint64_t table_bytes = 0;
  for (const SymbolTableKind kind : {SymbolTableKind::symtab, SymbolTableKind::dynsym})
    table_bytes += file.find_symbol_table(kind).value_or(ElfSymbolTable{}).entries.size();
  if (table_bytes > ElfFile::kMaxSymbols * sizeof(Elf64_Sym))
    return limits.too_large("read symbol table", table_bytes);
  const std::size_t max_symbols = limits.count(sizeof(SymbolCandidate), 1);
  const CodeRanges ranges(file);
  std::vector<SymbolCandidate> sized;
  std::vector<Unsized> open;
  // Without .symtab most functions are missing, and "up to the next symbol" would name strangers.
  bool may_be_unsized = true;
  const auto collect = [&](const ElfSymbol& symbol) {
    if (symbol.section_index == SHN_UNDEF || is_label(symbol.name)) return;
    if (sized.size() + open.size() > max_symbols) return;
    if (!is_function(symbol) && symbol.type != STT_NOTYPE) return;
    const std::optional<CodeRange> range = ranges.find(symbol);
    if (!range) return;
    const SymbolCandidate candidate{.start = symbol.value,
                                    .size = std::min(symbol.size, range->end - symbol.value),
                                    .name = symbol.name,
                                    .is_local = symbol.binding == STB_LOCAL};
    if (symbol.size > kMaxFunctionBytes) return;
    if (symbol.size != 0) {
      sized.push_back(candidate);
    } else if (may_be_unsized) {
      open.push_back({candidate, range->end});
    }
  };
  file.for_each_symbol(SymbolTableKind::symtab, collect);
  may_be_unsized = false;
  file.for_each_symbol(SymbolTableKind::dynsym, collect);
  if (sized.size() + open.size() > max_symbols) return limits.too_large("read symbol table", table_bytes);
  add_unsized(sized, open);
  return sized;
}

namespace {

using SlotNames = absl::flat_hash_map<std::uint64_t, std::string_view>;

// Which function each slot of the global offset table will hold.
SlotNames slot_names(const ElfFile& file, const ReadLimits& limits) {
  constexpr std::size_t kSlotBytes = 64;  // a place in the table, which doubles when it is full
  const std::size_t max_slots = limits.count(kSlotBytes, 4);
  const auto table = file.find_symbol_table(SymbolTableKind::dynsym);
  if (!table || table->entries.size() / sizeof(Elf64_Sym) > max_slots) return {};
  std::vector<std::string_view> symbols{std::string_view()};
  SlotNames choosers;  // by address: functions that choose the one that a slot will hold
  file.for_each_symbol(SymbolTableKind::dynsym, [&](const ElfSymbol& symbol) {
    symbols.push_back(symbol.name);
    if (symbol.type != STT_GNU_IFUNC || symbol.section_index == SHN_UNDEF) return;
    std::string_view& known = choosers.try_emplace(symbol.value, symbol.name).first->second;
    if (known.starts_with('_') && !symbol.name.starts_with('_')) known = symbol.name;
  });
  SlotNames slots;
  for (const char* name : {".rela.plt", ".rela.dyn"}) {
    const auto relocations = file.find_section(name);
    if (!relocations || relocations->data.size() > limits.bytes()) continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= relocations->data.size();
         at += sizeof(Elf64_Rela)) {
      const auto entry = *load<Elf64_Rela>(relocations->data, at);
      const auto type = ELF64_R_TYPE(entry.r_info);
      const std::uint64_t symbol = ELF64_R_SYM(entry.r_info);
      if (slots.size() >= max_slots) return {};
      if (type == R_X86_64_IRELATIVE) {
        const auto chooser = choosers.find(static_cast<std::uint64_t>(entry.r_addend));
        if (chooser != choosers.end()) slots.emplace(entry.r_offset, chooser->second);
      }
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
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

namespace {

constexpr std::uint32_t kMaxSymbolSize = 0x7fffffff;

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
    return std::tuple(symbol.start, ~symbol.size, symbol.is_plt, symbol.is_local,
                      leading_underscores(symbol.name), symbol.name.size(), symbol.name);
  };
  return rank(left) < rank(right);
}

void sort_and_drop_aliases(std::vector<SymbolCandidate>& symbols) {
  std::erase_if(symbols, [](const SymbolCandidate& symbol) { return symbol.size == 0; });
  std::sort(symbols.begin(), symbols.end(), comes_before);
  const auto is_alias = [](const SymbolCandidate& left, const SymbolCandidate& right) {
    return left.start == right.start && left.size == right.size;
  };
  symbols.erase(std::unique(symbols.begin(), symbols.end(), is_alias), symbols.end());
}

// The offset of a name in a string table; none when it lies elsewhere.
std::optional<std::uint32_t> offset_in(std::span<const std::byte> names, std::string_view name) {
  const auto* const text = reinterpret_cast<const std::byte*>(name.data());
  if (std::less<>()(text, names.data()) || !std::less<>()(text, names.data() + names.size()))
    return std::nullopt;
  return static_cast<std::uint32_t>(text - names.data());
}

// Calls `emit(symbol, start, end)` for disjoint ranges in ascending order: where symbols overlap, the one
// that starts later (the inner one) has it.
template <typename Emit>
void cut_into_pieces(std::span<const SymbolCandidate> symbols, Emit&& emit) {
  std::vector<const SymbolCandidate*> open;  // innermost last
  std::uint64_t done_to = 0;
  const auto close_up_to = [&](std::uint64_t limit) {
    while (!open.empty() && done_to < limit) {
      const SymbolCandidate& symbol = *open.back();
      const std::uint64_t end = symbol.start + symbol.size;
      if (end > done_to) {
        emit(symbol, done_to, std::min(end, limit));
        done_to = std::min(end, limit);
      }
      if (end <= limit) open.pop_back();
    }
  };
  for (const SymbolCandidate& symbol : symbols) {
    close_up_to(symbol.start);
    done_to = symbol.start;
    open.push_back(&symbol);
  }
  close_up_to(~std::uint64_t{0});
}

}  // namespace

Result<SymbolTable> SymbolTable::build(const ElfFile& file, const ReadLimits& limits) {
  std::vector<SymbolCandidate> symbols = TRY(code_symbols(file, limits));
  const std::vector<SymbolCandidate> stubs = plt_symbols(file, limits);
  symbols.insert(symbols.end(), stubs.begin(), stubs.end());
  sort_and_drop_aliases(symbols);

  SymbolTable table;
  auto in_file = file.find_symbol_table(SymbolTableKind::symtab);
  if (!in_file) in_file = file.find_symbol_table(SymbolTableKind::dynsym);
  if (in_file) table.file_names_ = in_file->names;
  const std::size_t max_pieces = limits.count(sizeof(Piece), 1);
  const SymbolCandidate* last = nullptr;
  Piece named;
  cut_into_pieces(symbols, [&](const SymbolCandidate& symbol, std::uint64_t start, std::uint64_t end) {
    if (table.pieces_.size() > max_pieces || table.names_.size() > limits.bytes()) return;
    if (&symbol != last) {
      last = &symbol;
      const auto offset = symbol.is_plt ? std::nullopt : offset_in(table.file_names_, symbol.name);
      named.is_name_in_file = offset ? 1 : 0;
      named.name = offset.value_or(static_cast<std::uint32_t>(table.names_.size()));
      named.symbol_size = static_cast<std::uint32_t>(symbol.size) & kMaxSymbolSize;
      if (!offset) table.names_.append(symbol.name).append(symbol.is_plt ? "@plt" : "") += '\0';
    }
    Piece& piece = table.pieces_.emplace_back(named);
    piece.start = start;
    piece.size = static_cast<std::uint32_t>(end - start);
    piece.symbol_offset = static_cast<std::uint32_t>(start - symbol.start);
  });
  if (table.pieces_.size() > max_pieces || table.names_.size() > limits.bytes())
    return limits.too_large("read symbol table", symbols.size() * sizeof(SymbolCandidate));
  table.pieces_.shrink_to_fit();
  table.names_.shrink_to_fit();
  return table;
}

std::optional<Symbol> SymbolTable::find(std::uint64_t elf_address) const {
  const auto after =
      std::upper_bound(pieces_.begin(), pieces_.end(), elf_address,
                       [](std::uint64_t address, const Piece& piece) { return address < piece.start; });
  if (after == pieces_.begin()) return std::nullopt;
  const Piece& piece = *std::prev(after);
  if (elf_address - piece.start >= piece.size) return std::nullopt;
  const std::string_view name =
      piece.is_name_in_file != 0 ? load_bounded_string(file_names_, piece.name, ElfFile::kMaxSymbolNameBytes)
                                 : std::string_view(names_.c_str() + piece.name);
  if (name.empty()) return std::nullopt;  // the file has been cut short meanwhile
  return Symbol{name, piece.start - piece.symbol_offset, piece.symbol_size};
}

}  // namespace ddprof
