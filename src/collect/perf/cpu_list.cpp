#include "collect/perf/cpu_list.hpp"

#include <sched.h>

#include <cerrno>
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

// Those that we may run on; so may the target, which inherits it.
Result<std::vector<int>> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return errno_error(errno, "sched_getaffinity");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
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
  std::ifstream file("/sys/devices/system/cpu/online");
  std::string line;
  // A chroot may have no /sys.
  return std::getline(file, line) ? parse_cpu_list(line) : own_cpus();
}

}  // namespace ddprof
