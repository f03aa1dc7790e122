#include "symbol/perf_map.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace ddprof {

namespace {

struct MapLine {
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::string_view name;
};

// A hexadecimal number, with or without 0x, and the spaces behind it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  if (!text.starts_with(' ')) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return value;
}

std::optional<MapLine> parse_map_line(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  const std::optional<std::uint64_t> start = take_number(text);
  if (!start) return std::nullopt;
  const std::optional<std::uint64_t> size = take_number(text);
  if (!size || *size == 0 || *size > ~*start || text.empty()) return std::nullopt;
  return MapLine{*start, *size, text.substr(0, PerfMap::kMaxNameBytes)};
}

struct Range {
  std::uint64_t end = 0;
  std::uint32_t name = 0;
};
using Ranges = std::map<std::uint64_t, Range>;

// Makes [start, end) free: what reaches into it is cut, what lies inside goes.
void clear_range(Ranges& ranges, std::uint64_t start, std::uint64_t end) {
  auto at = ranges.lower_bound(start);
  if (at != ranges.begin()) {
    const auto before = std::prev(at);
    const Range reaching = before->second;
    if (reaching.end > start) before->second.end = start;
    if (reaching.end > end) at = ranges.emplace_hint(at, end, reaching);
  }
  while (at != ranges.end() && at->first < end) {
    const Range inside = at->second;
    at = ranges.erase(at);
    if (inside.end > end) at = ranges.emplace_hint(at, end, inside);
  }
}

}  // namespace

PerfMap PerfMap::parse(std::string_view text) {
  PerfMap map;
  Ranges ranges;
  // A line without its newline is still being written.
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    const std::optional<MapLine> line = parse_map_line(text.substr(0, end));
    if (!line || ranges.size() >= kMaxEntries) {
      ++map.skipped_lines_;
      continue;
    }
    clear_range(ranges, line->start, line->start + line->size);
    ranges[line->start] = {line->start + line->size, static_cast<std::uint32_t>(map.names_.size())};
    std::string name(line->name);
    std::replace(name.begin(), name.end(), '\0', ' ');
    map.names_.append(name) += '\0';
  }
  map.entries_.reserve(ranges.size());
  for (const auto& [start, range] : ranges) map.entries_.push_back({start, range.end, range.name});
  return map;
}

std::optional<JitSymbol> PerfMap::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t value, const Entry& entry) { return value < entry.start; });
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *std::prev(after);
  if (address >= entry.end) return std::nullopt;
  return JitSymbol{names_.c_str() + entry.name, entry.start, entry.end - entry.start};
}

}  // namespace ddprof
