#include "process/proc_files.hpp"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>

#include "base/read_file.hpp"
#include "base/unique_fd.hpp"
#include "process/process_identity.hpp"

namespace ddprof {

namespace {

// The names of a directory that are numbers: /proc, or /proc/PID/task.
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

}  // namespace

std::string proc_path(Pid pid, std::string_view name) {
  const std::string process = pid == Pid{::getpid()} ? "self" : fmt::to_string(to_int(pid));
  return fmt::format("/proc/{}{}{}", process, name.empty() ? "" : "/", name);
}

Result<std::string> read_proc_file(Pid pid, std::string_view name) { return read_file(proc_path(pid, name)); }

std::string read_proc_link(Pid pid, std::string_view name) {
  std::error_code unreadable;
  return std::filesystem::read_symlink(proc_path(pid, name), unreadable).string();
}

std::uint64_t inode_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::vector<std::uint32_t> status_numbers(std::string_view status, std::string_view key) {
  std::vector<std::uint32_t> numbers;
  while (!status.empty()) {
    std::string_view line = status.substr(0, status.find('\n'));
    status.remove_prefix(std::min(line.size() + 1, status.size()));
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    line.remove_prefix(key.size() + 1);
    while (true) {
      line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
      std::uint32_t number = 0;
      const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (error != std::errc{}) return numbers;
      numbers.push_back(number);
      line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
    }
  }
  return numbers;
}

std::vector<Tid> list_threads(Pid pid) {
  std::vector<Tid> tids;
  for (const std::int32_t number : list_numbers(proc_path(pid, "task"))) tids.push_back(Tid{number});
  return tids;
}

std::optional<std::string> read_thread_name(Pid pid, Tid tid) {
  auto name = read_proc_file(pid, fmt::format("task/{}/comm", to_int(tid)));
  if (!name) return std::nullopt;
  return name->substr(0, name->rfind('\n'));  // there may be others in it
}

bool is_alive(Tid tid) {
  const auto task = read_process(to_int(tid));
  return task && !task->is_zombie;
}

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
  const UniqueFd file(::open(proc_path(Pid{number}, "stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t size = file.is_open() ? ::read(file.get(), text.data(), text.size()) : 0;
  if (size <= 0) return std::nullopt;
  return parse_process_stat({text.data(), static_cast<std::size_t>(size)});
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
