#include "symbol/jit_names.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

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
  return MapLine{*start, *size, text.substr(0, JitNames::kMaxNameBytes)};
}

}  // namespace

// Makes [start, end) free: what reaches into it is cut, what lies inside goes.
void JitNames::Builder::clear_range(std::uint64_t start, std::uint64_t end) {
  auto at = ranges_.lower_bound(start);
  if (at != ranges_.begin()) {
    const auto before = std::prev(at);
    const Range reaching = before->second;
    if (reaching.end > start) before->second.end = start;
    if (reaching.end > end) at = ranges_.emplace_hint(at, end, reaching);
  }
  while (at != ranges_.end() && at->first < end) {
    const Range inside = at->second;
    at = ranges_.erase(at);
    if (inside.end > end) at = ranges_.emplace_hint(at, end, inside);
  }
}

// Names of code that is gone make room when it is needed.
bool JitNames::Builder::has_room_for(std::string_view name) {
  if (ranges_.size() >= max_entries_) return false;
  if (map_.names_.size() + name.size() < max_name_bytes_) return true;
  std::string names;
  for (auto& [start, range] : ranges_) {
    const char* const old = map_.names_.c_str() + range.name;
    range.name = static_cast<std::uint32_t>(names.size());
    names.append(old) += '\0';
  }
  map_.names_ = std::move(names);
  if (map_.names_.size() < max_name_bytes_ / 4 * 3) return true;
  max_entries_ = 0;  // what is there now is all: not once more for each line
  return false;
}

void JitNames::Builder::add_line(std::string_view text) {
  const std::optional<MapLine> line = ++lines_ <= kMaxLines ? parse_map_line(text) : std::nullopt;
  const bool is_unread = lines_ > kMaxLines || (line && !has_room_for(line->name));
  if (!line || is_unread) {
    ++map_.skipped_lines_;
    map_.unread_lines_ += is_unread ? 1 : 0;
    return;
  }
  clear_range(line->start, line->start + line->size);
  ranges_[line->start] = {line->start + line->size, static_cast<std::uint32_t>(map_.names_.size())};
  std::string name(line->name);
  std::replace(name.begin(), name.end(), '\0', ' ');
  map_.names_.append(name) += '\0';
}

std::size_t JitNames::Builder::add(std::string_view text) {
  const std::size_t all = text.size();
  // A line without its newline is still being written.
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    add_line(text.substr(0, end));
  return all - text.size();
}

JitNames JitNames::Builder::build() && {
  map_.entries_.reserve(ranges_.size());
  for (const auto& [start, range] : ranges_) map_.entries_.push_back({start, range.end, range.name});
  return std::move(map_);
}

JitNames JitNames::parse(std::string_view text, const ReadLimits& limits) {
  Builder builder(limits);
  builder.add(text);
  return std::move(builder).build();
}

std::optional<JitSymbol> JitNames::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](std::uint64_t value, const Entry& entry) { return value < entry.start; });
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *std::prev(after);
  if (address >= entry.end) return std::nullopt;
  return JitSymbol{names_.c_str() + entry.name, entry.start, entry.end - entry.start};
}

}  // namespace ddprof
