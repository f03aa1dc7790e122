#include "symbol/symbol_table.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <tuple>

#include "base/turns.hpp"
#include "elf/elf_file.hpp"
#include "elf/load.hpp"
#include "symbol/symbol_candidate.hpp"

namespace ddprof {

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
