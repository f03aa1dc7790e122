#include "collect/perf/cpu_list.hpp"

#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace ddprof {

namespace {

constexpr int kMaxCpu = 65535;

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > kMaxCpu) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take_character(std::string_view& text, char character) {
  if (!text.starts_with(character)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  std::string_view left = text;
  do {
    auto first = take_number(left);
    auto last = first && take_character(left, '-') ? take_number(left) : first;
    if (!first || !last || *last < *first)
      return make_error(ErrorCode::corrupt, "CPU list '{}': not understood", text);
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
  } while (take_character(left, ','));
  if (!left.empty() && left != "\n")
    return make_error(ErrorCode::corrupt, "CPU list '{}': not understood", text);
  return cpus;
}

Result<std::vector<int>> online_cpus() {
  constexpr const char* kPath = "/sys/devices/system/cpu/online";
  std::ifstream file(kPath);
  std::string line;
  if (!std::getline(file, line)) return make_error(ErrorCode::failed, "read {}: no line", kPath);
  return parse_cpu_list(line);
}

}  // namespace ddprof
