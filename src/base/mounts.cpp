#include "base/mounts.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace ddprof {

namespace {

std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::optional<std::uint32_t> number_at(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// proc(5): id, parent, device, root of the mount, mount point, options, "-", type, source, more options.
std::optional<Mount> parse_line(std::string_view line) {
  take_word(line);
  take_word(line);
  const std::string_view device = take_word(line);
  take_word(line);
  Mount mount{.point = take_word(line)};
  const auto major = number_at(device);
  const std::size_t colon = device.find(':');
  if (!major || colon == std::string_view::npos || mount.point.empty()) return std::nullopt;
  mount.device = ::makedev(*major, number_at(device.substr(colon + 1)).value_or(0));
  constexpr std::string_view kBeforeType = " - ", kServer = "user_id=";
  const std::size_t separator = line.find(kBeforeType);
  if (separator == std::string_view::npos) return mount;
  line.remove_prefix(separator + kBeforeType.size());
  mount.type = take_word(line);
  const std::size_t server = mount.type.starts_with("fuse") ? line.find(kServer) : std::string_view::npos;
  if (server != std::string_view::npos) mount.server = number_at(line.substr(server + kServer.size()));
  return mount;
}

template <typename Take>
void for_each_mount(std::string_view mountinfo, Take take) {
  while (!mountinfo.empty()) {
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
    if (const auto mount = parse_line(line)) take(*mount);
  }
}

bool is_local(std::string_view type) {
  static constexpr std::array<std::string_view, 27> kLocal = {
      "binfmt_misc", "bpf",      "btrfs",    "cgroup",  "cgroup2", "configfs", "debugfs",
      "devpts",      "devtmpfs", "efivarfs", "ext2",    "ext3",    "ext4",     "fusectl",
      "hugetlbfs",   "mqueue",   "nsfs",     "overlay", "proc",    "pstore",   "ramfs",
      "securityfs",  "squashfs", "sysfs",    "tmpfs",   "tracefs", "xfs"};
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

std::optional<Mount> find_mount(std::string_view path, std::string_view mountinfo) {
  std::optional<Mount> best;
  for_each_mount(mountinfo, [&](const Mount& mount) {
    // The last one at the same place covers those before.
    if (mount.point.size() >= std::max<std::size_t>(best ? best->point.size() : 0, 2) &&
        is_below(path, mount.point))
      best = mount;
  });
  return best;
}

std::optional<Mount> find_mount_of_device(std::uint64_t device, std::string_view mountinfo) {
  std::optional<Mount> found;
  for_each_mount(mountinfo, [&](const Mount& mount) {
    if (mount.device == device) found = mount;
  });
  return found;
}

bool may_hang(std::string_view mountinfo) {
  bool is_any_local = false, is_any_other = false;
  for_each_mount(mountinfo,
                 [&](const Mount& mount) { (is_local(mount.type) ? is_any_local : is_any_other) = true; });
  return is_any_other || !is_any_local;
}

}  // namespace ddprof
