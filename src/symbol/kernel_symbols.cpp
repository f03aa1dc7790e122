#include "symbol/kernel_symbols.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

namespace ddprof {

namespace {

// kallsyms gives no sizes: a symbol ends where the next begins. Behind the last one of the kernel, or of a
// module, lies nothing that we know of; this much still counts as the symbol's.
constexpr std::uint64_t kMaxLastBytes = 64 << 10;
constexpr std::uint64_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxLines = 4'000'000;
constexpr std::size_t kMaxNameBytes = 512;  // KSYM_NAME_LEN

struct Line {
  std::uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;
};

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// "ffffffffc0a01000 t nft_do_chain\t[nf_tables]"
std::optional<Line> parse_line(std::string_view text) {
  Line line;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), line.address, 16);
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  if (error != std::errc{} || text.size() < 4 || text[0] != ' ' || text[2] != ' ') return std::nullopt;
  line.type = text[1];
  text.remove_prefix(3);
  text = text.substr(0, text.find('\0'));  // names are kept zero-terminated
  const std::size_t tab = text.find_first_of("\t ");
  line.name = text.substr(0, std::min({tab, text.size(), kMaxNameBytes}));
  if (tab != std::string_view::npos) line.module = text.substr(tab + 1, kMaxNameBytes);
  if (line.name.empty()) return std::nullopt;
  return line;
}

bool is_code(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

std::vector<Line> parse_lines(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty() && lines.size() < kMaxLines) {
    const std::optional<Line> line = parse_line(next_line(text));
    // Absolute symbols of per-CPU data are small numbers, hidden addresses are zero: neither is code.
    if (line && line->address >> 63 != 0) lines.push_back(*line);
  }
  const auto rank = [](const Line& line) { return std::tuple(line.address, !is_code(line.type), line.name); };
  std::sort(lines.begin(), lines.end(),
            [&](const Line& left, const Line& right) { return rank(left) < rank(right); });
  return lines;
}

}  // namespace

KernelSymbols KernelSymbols::parse(std::string_view kallsyms) {
  const std::vector<Line> lines = parse_lines(kallsyms);
  KernelSymbols symbols;
  symbols.names_ += '\0';
  absl::flat_hash_map<std::string_view, std::uint32_t> modules{{std::string_view(), 0}};
  const auto intern = [&](std::string_view name) {
    const auto offset = static_cast<std::uint32_t>(symbols.names_.size());
    symbols.names_.append(name) += '\0';
    return offset;
  };
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const Line& line = lines[at];
    if (!is_code(line.type) || (at > 0 && lines[at - 1].address == line.address)) continue;
    std::size_t next = at + 1;
    while (next < lines.size() && lines[next].address == line.address) ++next;
    std::uint64_t size = kMaxLastBytes;
    if (next < lines.size()) {
      const std::uint64_t gap = lines[next].address - line.address;
      size = std::min(gap, lines[next].module == line.module ? kMaxBytes : kMaxLastBytes);
    }
    const auto [module, is_new] = modules.emplace(line.module, 0);
    if (is_new) module->second = intern(line.module);
    symbols.entries_.push_back(
        {line.address, static_cast<std::uint32_t>(size), intern(line.name), module->second});
  }
  symbols.entries_.shrink_to_fit();
  symbols.names_.shrink_to_fit();
  return symbols;
}

std::optional<KernelSymbol> KernelSymbols::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t value, const Entry& entry) { return value < entry.start; });
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *std::prev(after);
  if (address - entry.start >= entry.size) return std::nullopt;
  return KernelSymbol{names_.c_str() + entry.name, names_.c_str() + entry.module, entry.start};
}

}  // namespace ddprof
