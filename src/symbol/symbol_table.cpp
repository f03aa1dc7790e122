#include "symbol/symbol_table.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "elf/elf_file.hpp"
#include "symbol/symbol_candidate.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxSymbolNameBytes = 4096;
constexpr std::size_t kMaxAllNamesBytes = std::size_t{256} << 20;

std::size_t leading_underscores(std::string_view name) {
  return std::min(name.find_first_not_of('_'), name.size());
}

// By place, and among aliases the best name first: what others link against before what is private to a file,
// the plain name before its underscored twins, then the shorter one.
bool comes_before(const SymbolCandidate& left, const SymbolCandidate& right) {
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

SymbolTable SymbolTable::build(const ElfFile& file) {
  std::vector<SymbolCandidate> symbols = code_symbols(file);
  const std::vector<SymbolCandidate> stubs = plt_symbols(file);
  symbols.insert(symbols.end(), stubs.begin(), stubs.end());
  sort_and_drop_aliases(symbols);

  SymbolTable table;
  const SymbolCandidate* last = nullptr;
  std::uint32_t last_name = 0;
  cut_into_pieces(symbols, [&](const SymbolCandidate& symbol, std::uint64_t start, std::uint64_t end) {
    if (&symbol != last) {
      if (table.names_.size() > kMaxAllNamesBytes) return;
      last = &symbol;
      last_name = static_cast<std::uint32_t>(table.names_.size());
      table.names_ += symbol.name.substr(0, kMaxSymbolNameBytes);
      if (symbol.is_plt) table.names_ += "@plt";
      table.names_ += '\0';
    }
    table.pieces_.push_back({start, static_cast<std::uint32_t>(end - start),
                             static_cast<std::uint32_t>(start - symbol.start),
                             static_cast<std::uint32_t>(symbol.size), last_name});
  });
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
  return Symbol{names_.c_str() + piece.name, piece.start - piece.symbol_offset, piece.symbol_size};
}

}  // namespace ddprof
