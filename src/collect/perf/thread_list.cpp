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

struct TaskStatus {
  char state = 0;
  std::int32_t parent = 0;
};

// From /proc/PID/stat: "PID (name, which may hold anything) STATE PARENT ...".
std::optional<TaskStatus> status_of(std::int32_t task) {
  std::ifstream file(fmt::format("/proc/{}/stat", task));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  std::size_t name_end = line.rfind(')');
  constexpr std::size_t kToState = 2;   // ") "
  constexpr std::size_t kToParent = 4;  // ") S "
  if (name_end == std::string::npos || name_end + kToParent >= line.size()) return std::nullopt;
  TaskStatus status{.state = line[name_end + kToState]};
  auto result = std::from_chars(line.data() + name_end + kToParent, line.data() + line.size(), status.parent);
  if (result.ec != std::errc()) return std::nullopt;
  return status;
}

}  // namespace

std::vector<Tid> list_threads(Pid pid) {
  std::vector<Tid> tids;
  for (std::int32_t number : list_numbers(fmt::format("/proc/{}/task", to_int(pid))))
    tids.push_back(Tid{number});
  return tids;
}

bool is_alive(Tid tid) {
  auto status = status_of(to_int(tid));
  return status && status->state != 'Z' && status->state != 'X';
}

std::vector<ProcessParent> list_processes() {
  std::vector<ProcessParent> processes;
  for (std::int32_t pid : list_numbers("/proc"))
    if (auto status = status_of(pid)) processes.push_back({Pid{pid}, Pid{status->parent}});
  return processes;
}

}  // namespace ddprof
