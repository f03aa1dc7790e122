#include "process/target_roots.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace ddprof {

std::string TargetRoot::path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

TargetRoots::Key TargetRoots::key_of(const std::string& process) {
  std::error_code ignored;
  struct statx root {};
  // As the kernel remembers it: a root on a file system that hangs must not hang us.
  if (::statx(AT_FDCWD, (process + "/root/").c_str(), AT_STATX_DONT_SYNC, STATX_INO, &root) != 0) return {};
  return {std::filesystem::read_symlink(process + "/ns/mnt", ignored).string(),
          (std::uint64_t{root.stx_dev_major} << 32U) | root.stx_dev_minor, root.stx_ino};
}

Result<std::shared_ptr<const TargetRoot>> TargetRoots::find_or_open(Pid pid) {
  const std::string process = fmt::format("/proc/{}", to_int(pid));
  const Key key = key_of(process);
  if (key == Key()) return errno_error(ESRCH, "find root of " + process);
  if (key == key_of("/proc/self")) return std::shared_ptr<const TargetRoot>();
  if (auto known = roots_.find(key); known != roots_.end()) {
    if (auto root = known->second.lock()) return root;
  }
  std::erase_if(roots_, [](const auto& entry) { return entry.second.expired(); });
  UniqueFd fd;
  if (roots_.size() < kMaxRoots)
    fd = UniqueFd(::open((process + "/root/").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const bool is_held = fd.is_open();
  auto root = std::make_shared<const TargetRoot>(std::move(fd));
  if (is_held) roots_[key] = root;
  return root;
}

bool sees_our_root(Pid pid) {
  const auto key = TargetRoots::key_of(fmt::format("/proc/{}", to_int(pid)));
  return key != TargetRoots::Key() && key == TargetRoots::key_of("/proc/self");
}

}  // namespace ddprof
