#include "base/patient_opener.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "base/call_within.hpp"
#include "base/read_file.hpp"

namespace ddprof {

namespace {

// O_NONBLOCK: a path that has become a FIFO must not hang us.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

bool is_below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

UniqueFd open_below(const std::string& root, const std::string& path) {
  if (root.empty()) return UniqueFd(::open(path.c_str(), kOpenFlags));
  const UniqueFd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return {};
  open_how how{};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
  // Older kernels, and containers whose filter has not heard of it: links may then lead into our own files.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return UniqueFd(::open((root + "/" + path).c_str(), kOpenFlags));
  return UniqueFd(static_cast<int>(fd));
}

std::string mountinfo_path(const std::string& root) {
  constexpr std::string_view end = "/root";
  if (root.starts_with("/proc/") && root.ends_with(end))
    return root.substr(0, root.size() - end.size()) + "/mountinfo";
  return "/proc/self/mountinfo";
}

}  // namespace

Result<UniqueFd> open_regular_file(const std::string& root, const std::string& path) {
  UniqueFd fd = open_below(root, path);
  if (!fd.is_open()) return errno_error(errno, "open " + root + path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "stat " + root + path);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::unsupported, "open {}{}: not a regular file", root, path);
  char first = 0;
  if (::pread(fd.get(), &first, 1, 0) < 0) return errno_error(errno, "read " + root + path);
  return fd;
}

bool PatientOpener::is_left_alone(std::string_view path) const {
  return hung_places_.size() >= kMaxHungCalls ||
         std::any_of(hung_places_.begin(), hung_places_.end(),
                     [path](const std::string& place) { return is_below(path, place); });
}

Result<UniqueFd> PatientOpener::open(const std::string& root, const std::string& path) {
  if (is_left_alone(root + path))
    return make_error(ErrorCode::exhausted, "open {}{}: its file system hung before", root, path);
  auto opened = call_within(patience_, [open = open_, root, path] { return open(root, path); });
  if (opened) return std::move(*opened);
  hung_places_.push_back(mount_of(root, path, read_file(mountinfo_path(root)).value_or({})));
  return make_error(ErrorCode::exhausted, "open {}{}: its file system hangs, {} is left alone from now on",
                    root, path, hung_places_.back());
}

std::string mount_of(const std::string& root, const std::string& path, std::string_view mountinfo) {
  std::string_view best;
  while (!mountinfo.empty()) {
    std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
    // proc(5): id, parent, device, root of the mount, mount point.
    for (int field = 0; field < 4; ++field) line.remove_prefix(std::min(line.size(), line.find(' ') + 1));
    line = line.substr(0, line.find(' '));
    if (line.size() > std::max<std::size_t>(best.size(), 1) && is_below(path, line)) best = line;
  }
  if (best.empty()) best = std::string_view(path).substr(0, path.rfind('/') + 1);
  return root + std::string(best);
}

}  // namespace ddprof
