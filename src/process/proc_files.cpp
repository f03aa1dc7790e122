#include "process/proc_files.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "base/unique_fd.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

std::optional<RunningProcess> parse_process_stat(std::string_view text) {
  // "PID (name, which may hold anything) STATE PARENT …"; the 20th field is the number of threads.
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kThreads = 17;
  const std::size_t name_begin = text.find('(');
  const std::size_t name_end = text.rfind(") ");
  if (name_begin == std::string_view::npos || name_end == std::string_view::npos || name_end < name_begin)
    return std::nullopt;
  std::int32_t pid = 0;
  if (std::from_chars(text.data(), text.data() + name_begin, pid).ec != std::errc()) return std::nullopt;
  RunningProcess process{.pid = Pid{pid},
                         .name = std::string(text.substr(name_begin + 1, name_end - name_begin - 1))};
  text.remove_prefix(name_end + 2);
  if (text.empty()) return std::nullopt;
  process.is_zombie = text[0] == 'Z' || text[0] == 'X';
  std::size_t known = 0;
  for (std::size_t field = 0; field <= kThreads && !text.empty(); ++field) {
    std::int64_t number = 0;
    const bool is_number = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
    if (field == kParent && is_number) process.parent = Pid{static_cast<std::int32_t>(number)};
    if (field == kThreads && is_number) process.threads = static_cast<std::uint64_t>(number);
    known += (field == kParent || field == kThreads) && is_number ? 1 : 0;
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  }
  return known == 2 ? std::optional(std::move(process)) : std::nullopt;
}

// The kernel gives it in one piece. Hosts have thousands of processes: two calls less for each are worth it.
std::optional<RunningProcess> read_process(std::int32_t number) {
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", number).c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t size = file.is_open() ? ::read(file.get(), text.data(), text.size()) : 0;
  if (size <= 0) return std::nullopt;
  return parse_process_stat({text.data(), static_cast<std::size_t>(size)});
}

std::vector<std::int32_t> list_numbers(const std::string& directory) {
  std::vector<std::int32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(directory.c_str()), ::closedir);
  if (!entries) return numbers;
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    std::int32_t number = 0;
    const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc() && stop == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

std::vector<RunningProcess> list_processes() {
  std::vector<RunningProcess> processes;
  for (const std::int32_t number : list_numbers("/proc"))
    if (auto process = read_process(number)) processes.push_back(std::move(*process));
  return processes;
}

std::vector<RunningProcess> with_descendants(std::span<const Pid> roots,
                                             std::span<const RunningProcess> processes, Pid except) {
  absl::flat_hash_map<std::int32_t, const RunningProcess*> by_pid;
  absl::flat_hash_map<std::int32_t, std::vector<const RunningProcess*>> children;
  for (const RunningProcess& process : processes) {
    if (process.has_ended()) continue;
    by_pid[to_int(process.pid)] = &process;
    children[to_int(process.parent)].push_back(&process);
  }
  absl::flat_hash_set<std::int32_t> seen;
  std::vector<RunningProcess> found;
  for (const Pid root : roots) {
    const auto known = by_pid.find(to_int(root));
    if (known != by_pid.end() && seen.insert(to_int(root)).second) found.push_back(*known->second);
  }
  seen.insert(to_int(except));
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto of_parent = children.find(to_int(found[next].pid));
    if (of_parent == children.end()) continue;
    for (const RunningProcess* child : of_parent->second)
      if (seen.insert(to_int(child->pid)).second) found.push_back(*child);
  }
  return found;
}

std::string describe_process(Pid pid, std::string_view name) {
  const std::string shown = fit_to_be_shown(name);
  return shown.empty() ? fmt::format("{}", to_int(pid)) : fmt::format("{} ({})", to_int(pid), shown);
}

}  // namespace ddprof
