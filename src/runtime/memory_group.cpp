#include "runtime/memory_group.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/read_file.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kGroupPrefix = "ddprof-";  // and the number of the supervisor

bool write_text(const std::string& path, std::string_view text) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.is_open() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Our group in the hierarchy that has the memory controller: "5:memory:/path" of version 1, or "0::/path".
struct Place {
  std::string folder;
  bool is_unified = false;
};

std::optional<Place> find_place(const std::string& root, std::string_view membership) {
  std::optional<Place> unified;
  while (!membership.empty()) {
    const std::string_view line = membership.substr(0, membership.find('\n'));
    membership.remove_prefix(std::min(line.size() + 1, membership.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers == "memory") return Place{root + "/memory" + path, false};
    if (controllers.empty()) unified = Place{root + path, true};
  }
  return unified;
}

// In clock ticks since the machine started; empty for a process that is gone.
std::string start_time(std::int64_t pid) {
  constexpr int kStartTime = 19;  // the 22nd field, counted behind the name, which may hold anything
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid)).value_or("");
  std::istringstream fields(text.substr(std::min(text.rfind(") ") + 2, text.size())));
  std::string field;
  for (int i = 0; i <= kStartTime && fields >> field; ++i) {
  }
  return fields ? field : "";
}

// Process ids are used again, and mean different processes in different PID namespaces; this number does not.
std::string unique_number(std::int64_t pid) {
  struct stat name_space {};
  ::stat("/proc/self/ns/pid", &name_space);
  return fmt::format("{}-{}-{}", name_space.st_ino, pid, start_time(pid));
}

// Whether a group of this name was made by a supervisor of this PID namespace that is gone.
bool is_of_the_dead(std::string_view name) {
  if (!name.starts_with(kGroupPrefix)) return false;
  name.remove_prefix(kGroupPrefix.size());
  const std::size_t first = name.find('-');
  if (first == std::string_view::npos) return false;
  std::int64_t pid = 0;
  const auto parsed = std::from_chars(name.data() + first + 1, name.data() + name.size(), pid);
  if (parsed.ec != std::errc() || pid <= 0) return false;
  const std::string living = unique_number(pid);
  const auto without_start = [](std::string_view number) { return number.substr(0, number.rfind('-')); };
  return name != living && without_start(name) == without_start(living);
}

// A supervisor that was killed could not remove its group. One that is in use cannot be removed.
void remove_groups_of_the_dead(const std::string& parent) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(parent, failed)) {
    struct stat owner {};
    if (is_of_the_dead(entry.path().filename().native()) && ::lstat(entry.path().c_str(), &owner) == 0 &&
        owner.st_uid == ::geteuid())
      ::rmdir(entry.path().c_str());
  }
}

}  // namespace

std::optional<MemoryGroup> MemoryGroup::create(std::uint64_t limit_bytes, const std::string& root) {
  auto membership = read_file("/proc/self/cgroup");
  if (!membership) return std::nullopt;
  return create(limit_bytes, root, *membership, ::getpid());
}

std::optional<MemoryGroup> MemoryGroup::create(std::uint64_t limit_bytes, const std::string& root,
                                               std::string_view membership, std::int64_t pid) {
  auto place = find_place(root, membership);
  if (limit_bytes == 0 || !place) return std::nullopt;
  // Refused when processes live in that group, as they do in a container: only its leaves may hold any.
  if (place->is_unified && !write_text(place->folder + "/cgroup.subtree_control", "+memory"))
    return std::nullopt;
  remove_groups_of_the_dead(place->folder);
  std::string folder = fmt::format("{}/{}{}", place->folder, kGroupPrefix, unique_number(pid));
  if (::mkdir(folder.c_str(), 0755) != 0) return std::nullopt;
  MemoryGroup group(std::move(folder));
  const char* limit = place->is_unified ? "/memory.max" : "/memory.limit_in_bytes";
  if (!write_text(group.folder_ + limit, std::to_string(limit_bytes))) return std::nullopt;
  return group;
}

MemoryGroup::~MemoryGroup() {
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

void raise_oom_score(int adjustment) {
  const std::string path = "/proc/self/oom_score_adj";
  if (std::atoi(read_file(path).value_or("0").c_str()) < adjustment)
    write_text(path, std::to_string(adjustment));
}

void MemoryGroup::enter() const { write_text(folder_ + "/cgroup.procs", std::to_string(::getpid())); }

}  // namespace ddprof
