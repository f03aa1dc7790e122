#include "process/address_space.hpp"

#include <algorithm>
#include <charconv>

namespace ddprof {

namespace {

// A program that maps code without end (a JIT, or a hostile one) may not grow us without end.
constexpr std::size_t kMaxMappings = 65536;

}  // namespace

void AddressSpace::map(const CodeMapping& mapping) {
  if (mapping.end <= mapping.start) return;
  auto first = std::partition_point(mappings_.begin(), mappings_.end(),
                                    [&](const CodeMapping& old) { return old.end <= mapping.start; });
  auto last = std::partition_point(first, mappings_.end(),
                                   [&](const CodeMapping& old) { return old.start < mapping.end; });
  std::vector<CodeMapping> replacement;
  if (first != last && first->start < mapping.start) {
    CodeMapping head = *first;
    head.end = mapping.start;
    replacement.push_back(head);
  }
  replacement.push_back(mapping);
  if (first != last && std::prev(last)->end > mapping.end) {
    CodeMapping tail = *std::prev(last);
    tail.file_offset += mapping.end - tail.start;
    tail.start = mapping.end;
    replacement.push_back(tail);
  }
  auto position = mappings_.erase(first, last);
  mappings_.insert(position, replacement.begin(), replacement.end());
  if (mappings_.size() > kMaxMappings) mappings_.erase(mappings_.begin());
}

const CodeMapping* AddressSpace::find(Address address) const {
  auto after = std::partition_point(mappings_.begin(), mappings_.end(),
                                    [&](const CodeMapping& mapping) { return mapping.end <= address; });
  return after != mappings_.end() && after->contains(address) ? &*after : nullptr;
}

namespace {

// Consumes a number in `base` and the `separator` behind it.
template <typename Integer>
bool take_number(std::string_view& text, int base, char separator, Integer& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return separator == '\0';
  if (text.front() != separator && separator != '\0') return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<ProcMapsLine> parse_proc_maps_line(std::string_view line) {
  ProcMapsLine parsed;
  if (!take_number(line, 16, '-', parsed.start.value) || !take_number(line, 16, ' ', parsed.end.value))
    return std::nullopt;
  if (line.size() < 5 || parsed.end <= parsed.start) return std::nullopt;
  parsed.is_executable = line[2] == 'x';
  line.remove_prefix(5);
  if (!take_number(line, 16, ' ', parsed.file_offset) || !take_number(line, 16, ':', parsed.device_major) ||
      !take_number(line, 16, ' ', parsed.device_minor) || !take_number(line, 10, '\0', parsed.inode)) {
    return std::nullopt;
  }
  std::size_t path = line.find_first_not_of(' ');
  if (path != std::string_view::npos) parsed.path = line.substr(path);
  return parsed;
}

std::vector<ProcMapsLine> parse_executable_maps(std::string_view text) {
  std::vector<ProcMapsLine> lines;
  while (!text.empty()) {
    std::size_t newline = text.find('\n');
    auto parsed = parse_proc_maps_line(text.substr(0, newline));
    if (parsed && parsed->is_executable) lines.push_back(*parsed);
    if (newline == std::string_view::npos) break;
    text.remove_prefix(newline + 1);
  }
  return lines;
}

}  // namespace ddprof
