#include "process/confinement.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "process/proc_files.hpp"

namespace ddprof {

namespace {

bool is_hexadecimal(char digit) { return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f'); }

bool is_separator(char sign) { return sign == '-' || sign == '_'; }

// Groups of hexadecimal digits of these lengths at the end of `text`, with separators between them. Returns
// how many characters that are; 0: the text does not end so.
std::size_t suffix_of_groups(std::string_view text, std::span<const std::size_t> lengths) {
  std::size_t at = text.size();
  for (std::size_t group = lengths.size(); group > 0; --group) {
    if (at < lengths[group - 1]) return 0;
    at -= lengths[group - 1];
    const std::string_view digits = text.substr(at, lengths[group - 1]);
    if (!std::all_of(digits.begin(), digits.end(), is_hexadecimal)) return 0;
    if (group > 1 && (at == 0 || !is_separator(text[--at]))) return 0;
  }
  return text.size() - at;
}

// "<32 hexadecimal digits>-<number>": a task of ECS on Fargate.
std::size_t suffix_of_task(std::string_view text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos || dash < 32 || dash + 1 == text.size()) return 0;
  const auto is_digit = [](char sign) { return sign >= '0' && sign <= '9'; };
  const std::string_view number = text.substr(dash + 1);
  const std::string_view task = text.substr(dash - 32, 32);
  if (!std::all_of(number.begin(), number.end(), is_digit) ||
      !std::all_of(task.begin(), task.end(), is_hexadecimal))
    return 0;
  return text.size() - (dash - 32);
}

std::string_view id_at_end(std::string_view text) {
  constexpr std::array<std::size_t, 1> kDigest = {64};
  constexpr std::array<std::size_t, 5> kUuid = {8, 4, 4, 4, 12};
  constexpr std::array<std::size_t, 5> kGarden = {8, 4, 4, 4, 4};
  for (const std::size_t size : {suffix_of_groups(text, kDigest), suffix_of_groups(text, kUuid),
                                 suffix_of_groups(text, kGarden), suffix_of_task(text)}) {
    if (size > 0) return text.substr(text.size() - size);
  }
  return {};
}

std::string_view without_end(std::string_view text, std::string_view end) {
  return text.ends_with(end) ? text.substr(0, text.size() - end.size()) : text;
}

constexpr std::string_view kCgroupMount = "/sys/fs/cgroup";
// Of the namespace that the machine itself is in: the kernel's PROC_CGROUP_INIT_INO.
constexpr std::uint64_t kInitialCgroupNamespace = 0xEFFFFFFB;

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// A group outside of our own namespace is shown as "/../other".
bool leads_outside(std::string_view path) { return path == "/.." || path.starts_with("/../"); }

// Calls take(line) for each line, without its end, until it returns true.
template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (take(text.substr(0, end))) return;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::string_view container_id_in(std::string_view path) {
  while (path.ends_with(' ')) path.remove_suffix(1);
  if (const auto id = id_at_end(without_end(path, ".scope")); !id.empty()) return id;
  // podman puts the processes one level below: "…/libpod-<id>.scope/container".
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos || !path.substr(0, slash).ends_with(".scope")) return {};
  return id_at_end(without_end(path.substr(0, slash), ".scope"));
}

Confinement parse_cgroup(std::string_view text) {
  Confinement found;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return false;
    const std::string_view path = line.substr(second + 1);
    if (found.cgroup.empty() && path != "/") found.cgroup = path;
    const std::string_view id = container_id_in(path);
    if (id.empty()) return false;
    found.container_id = id;
    found.cgroup = path;
    return true;
  });
  return found;
}

std::string cgroup_directory_in(std::string_view text) {
  std::string found;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) return false;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    const bool has_memory = has_word(controllers, "memory");
    if ((!has_memory && !controllers.empty()) || !path.starts_with('/') || leads_outside(path)) return false;
    found = fmt::format("{}{}{}", kCgroupMount, has_memory ? "/memory" : "", path);
    return has_memory;
  });
  return found;
}

std::optional<Pid> parse_namespace_pid(std::string_view status) {
  const auto pids = status_numbers(status, "NSpid");
  if (pids.size() < 2 || pids.back() == 0) return std::nullopt;
  return Pid{static_cast<std::int32_t>(pids.back())};
}

std::shared_ptr<const Confinement> read_confinement(Pid pid) {
  auto text = read_proc_file(pid, "cgroup");
  return std::make_shared<const Confinement>(text ? parse_cgroup(*text) : Confinement());
}

std::string read_entity_id(Pid pid) {
  auto text = read_proc_file(pid, "cgroup");
  if (!text) return {};
  if (const Confinement found = parse_cgroup(*text); !found.container_id.empty())
    return "ci-" + found.container_id;
  // Outside of containers the inode would be that of a service or a session.
  const std::uint64_t name_space = inode_of(proc_path(pid, "ns/cgroup"));
  if (name_space == 0 || name_space == kInitialCgroupNamespace) return {};
  const std::string directory = cgroup_directory_in(*text);
  const std::uint64_t inode = directory.empty() ? 0 : inode_of(directory);
  return inode == 0 ? "" : fmt::format("in-{}", inode);
}

std::optional<Pid> read_namespace_pid(Pid pid) {
  auto text = read_proc_file(pid, "status");
  return text ? parse_namespace_pid(*text) : std::nullopt;
}

std::optional<std::uint32_t> parse_effective_user(std::string_view status) {
  const auto users = status_numbers(status, "Uid");  // real, effective, saved, of the file system
  return users.size() > 1 ? std::optional(users[1]) : std::nullopt;
}

std::optional<std::uint32_t> read_effective_user(Pid pid) {
  auto text = read_proc_file(pid, "status");
  return text ? parse_effective_user(*text) : std::nullopt;
}

}  // namespace ddprof
