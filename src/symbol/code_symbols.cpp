#include <elf.h>

#include <algorithm>
#include <optional>

#include "elf/elf_file.hpp"
#include "symbol/symbol_candidate.hpp"

namespace ddprof {

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

}  // namespace ddprof
