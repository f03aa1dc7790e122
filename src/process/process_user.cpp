#include "process/process_user.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

// The numbers behind "Key:" of a /proc/PID/status, divided by tabs or blanks.
std::vector<std::uint32_t> numbers_behind(std::string_view status, std::string_view key) {
  std::vector<std::uint32_t> numbers;
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return numbers;
  std::string_view line = status.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  while (!line.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
    std::uint32_t number = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
  }
  return numbers;
}

}  // namespace

std::optional<ProcessUser> parse_process_user(std::string_view status) {
  const auto users = numbers_behind(status, "\nUid:");  // real, effective, saved, of the file system
  const auto groups = numbers_behind(status, "\nGid:");
  const auto pids = numbers_behind(status, "\nNSpid:");
  if (users.size() < 4 || groups.size() < 4) return std::nullopt;
  ProcessUser user{{users[3], groups[3], numbers_behind(status, "\nGroups:")}, 0};
  if (!pids.empty()) user.inner_pid = static_cast<std::int32_t>(pids.back());
  return user;
}

std::optional<ProcessUser> read_process_user(Pid pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", to_int(pid)));
  auto user = status ? parse_process_user(*status) : std::nullopt;
  if (user && user->inner_pid == 0) user->inner_pid = to_int(pid);
  return user;
}

std::optional<std::uint32_t> find_user_of(Pid pid) {
  struct stat status {};
  if (::stat(fmt::format("/proc/{}", to_int(pid)).c_str(), &status) != 0) return std::nullopt;
  if (status.st_uid != 0) return status.st_uid;
  const auto user = read_process_user(pid);
  return user ? std::optional(user->rights.user) : std::nullopt;
}

std::optional<UserRights> rights_of_writer(std::optional<std::uint32_t> owner,
                                           const std::optional<UserRights>& process) {
  if (!owner) return process && process->user != 0 ? process : rights_of_user(kNoGroup);
  if (*owner == 0 || *owner == ::geteuid()) return std::nullopt;
  return process && process->user == *owner ? process : rights_of_user(*owner);
}

}  // namespace ddprof
