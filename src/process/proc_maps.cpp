#include "process/proc_maps.hpp"

#include <charconv>

namespace ddprof {

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
