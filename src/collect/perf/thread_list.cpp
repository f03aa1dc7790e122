#include "collect/perf/thread_list.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace ddprof {

namespace {

// Names of a directory that are numbers.
std::vector<std::int32_t> list_numbers(const std::filesystem::path& directory) {
  std::vector<std::int32_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::int32_t number = 0;
    auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc() && stop == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// The parent in /proc/PID/stat: "PID (name, which may hold anything) STATE PARENT ...".
std::optional<std::int32_t> parent_of(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::size_t name_end = line.rfind(')');
  constexpr std::size_t kToParent = 4;  // ") S "
  if (name_end == std::string::npos || name_end + kToParent >= line.size()) return std::nullopt;
  std::int32_t parent = 0;
  auto result = std::from_chars(line.data() + name_end + kToParent, line.data() + line.size(), parent);
  if (result.ec != std::errc()) return std::nullopt;
  return parent;
}

}  // namespace

std::vector<Tid> list_threads(Pid pid) {
  std::vector<Tid> tids;
  for (std::int32_t number : list_numbers(fmt::format("/proc/{}/task", to_int(pid))))
    tids.push_back(Tid{number});
  return tids;
}

std::vector<ProcessParent> list_processes() {
  std::vector<ProcessParent> processes;
  for (std::int32_t pid : list_numbers("/proc"))
    if (auto parent = parent_of(pid)) processes.push_back({Pid{pid}, Pid{*parent}});
  return processes;
}

}  // namespace ddprof
