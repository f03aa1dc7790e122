#include "base/foreign_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/mounts.hpp"
#include "base/read_file.hpp"

namespace ddprof {

namespace {

constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

// File systems whose files are the kernel's own: reading may do something.
constexpr std::uint32_t kConfigfs = 0x62656570;  // those that linux/magic.h does not name
constexpr std::uint32_t kFusectl = 0x65735543;
constexpr std::uint32_t kMqueue = 0x19800202;
constexpr std::uint32_t kNfsd = 0x6e667364;
constexpr std::uint32_t kRpcPipes = 0x67596969;
constexpr auto kKernelFileSystems = std::to_array<std::uint32_t>({PROC_SUPER_MAGIC,
                                                                  SYSFS_MAGIC,
                                                                  DEBUGFS_MAGIC,
                                                                  TRACEFS_MAGIC,
                                                                  CGROUP_SUPER_MAGIC,
                                                                  CGROUP2_SUPER_MAGIC,
                                                                  SECURITYFS_MAGIC,
                                                                  SELINUX_MAGIC,
                                                                  SMACK_MAGIC,
                                                                  AAFS_MAGIC,
                                                                  PSTOREFS_MAGIC,
                                                                  EFIVARFS_MAGIC,
                                                                  BPF_FS_MAGIC,
                                                                  BINFMTFS_MAGIC,
                                                                  DEVPTS_SUPER_MAGIC,
                                                                  NSFS_MAGIC,
                                                                  RDTGROUP_SUPER_MAGIC,
                                                                  USBDEVICE_SUPER_MAGIC,
                                                                  kConfigfs,
                                                                  kFusectl,
                                                                  kMqueue,
                                                                  kNfsd,
                                                                  kRpcPipes});

std::string name_of(const FileRequest& request) { return request.root + request.path; }

// What is there, without opening it.
UniqueFd find(const FileRequest& request, const UniqueFd& root) {
  using Links = FileRequest::Links;
  if (request.links == Links::of_kernel) return UniqueFd(::open(request.path.c_str(), O_PATH | O_CLOEXEC));
  if (request.rights && !request.path.starts_with('/')) {
    errno = ENOENT;  // from our working directory, which they may not be able to reach
    return {};
  }
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  if (request.links == Links::last_refused) how.flags |= O_NOFOLLOW;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  if (request.links == Links::refused) how.resolve |= RESOLVE_NO_SYMLINKS;
  if (root.is_open()) how.resolve |= RESOLVE_IN_ROOT;
  const int folder = root.is_open() ? root.get() : AT_FDCWD;
  const long fd = ::syscall(SYS_openat2, folder, request.path.c_str(), &how, sizeof how);
  // Before Linux 5.6, and where a filter has not heard of it: only for names and rights of our own. Links may
  // lead out of another root, and through /proc/self to what we alone have open.
  const bool is_ours = request.root.empty() && !request.rights;
  if (fd < 0 && (errno == ENOSYS || errno == EPERM) && is_ours)
    return UniqueFd(::open(request.path.c_str(), static_cast<int>(how.flags)));
  return UniqueFd(static_cast<int>(fd));
}

bool is_the_one(const FileRequest& request, const struct stat& status) {
  if (request.inode == 0) return true;
  // Overlay and btrfs report another device to stat than to the kernel's own records: there the inode
  // decides.
  return status.st_ino == request.inode && (status.st_dev == request.device || ::major(status.st_dev) == 0);
}

// Served by a program of another user than root: FUSE, which says of its files what it likes.
bool is_served_by_user(const FileRequest& request, const struct stat& status) {
  const auto mounts = read_file(request.mounts);
  const auto mount = mounts ? find_mount_of_device(status.st_dev, *mounts) : std::nullopt;
  if (!mount) return true;
  return mount->server.value_or(0) != 0 && mount->server != ::geteuid();
}

std::optional<std::uint32_t> sole_writer(const struct stat& status) {
  // The choice of a user to let others write is that user's. What root owns is believed by all.
  const bool is_shared_by_group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0;
  if (status.st_uid == 0 && (is_shared_by_group || (status.st_mode & S_IWOTH) != 0)) return std::nullopt;
  return status.st_uid;
}

Result<MappedRegion> copy_content(const FileRequest& request, int fd, std::size_t bytes) {
  if (bytes > request.max_copied_bytes)
    return make_error(ErrorCode::unsupported, "open {}: its file system is another user's", name_of(request));
  return MappedRegion::copy_file(fd, bytes);
}

}  // namespace

Result<ForeignFile> open_foreign_file(const FileRequest& request) {
  const std::string name = name_of(request);
  const auto failed = [&name](const char* what) { return errno_error(errno, what + name); };
  // Before we become another user, who may not follow the links in /proc.
  UniqueFd root;
  if (!request.root.empty()) {
    root = UniqueFd(::open(request.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root.is_open()) return failed("open ");
  }
  const UniqueFd descriptors(::open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (request.rights && !take_on(*request.rights))
    return make_error(ErrorCode::permission_denied, "open {}: user {} cannot be taken on for it", name,
                      request.rights->user);

  const UniqueFd found = find(request, root);
  if (!found.is_open()) return failed("open ");
  struct stat status {};
  struct statfs system {};
  if (::fstat(found.get(), &status) != 0) return failed("stat ");
  if (S_ISLNK(status.st_mode))
    return make_error(ErrorCode::unsupported, "open {}: refused, it is a symbolic link", name);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::unsupported, "open {}: refused, it is not a regular file", name);
  if (!is_the_one(request, status))
    return make_error(ErrorCode::not_found, "open {}: another file is there now", name);
  if (::fstatfs(found.get(), &system) != 0) return failed("stat ");
  const auto type = static_cast<std::uint32_t>(system.f_type);
  if (std::find(kKernelFileSystems.begin(), kKernelFileSystems.end(), type) != kKernelFileSystems.end())
    return make_error(ErrorCode::unsupported, "open {}: refused, it is the kernel's", name);

  ForeignFile file{.device = status.st_dev, .inode = status.st_ino, .owner = sole_writer(status)};
  file.user = status.st_uid;
  file.fd = UniqueFd(::openat(descriptors.get(), std::to_string(found.get()).c_str(), kReadFlags));
  if (!file.fd.is_open()) return failed("open ");
  char first = 0;  // for file systems that open what they cannot read
  if (::pread(file.fd.get(), &first, 1, 0) < 0) return failed("read ");
  if (type == FUSE_SUPER_MAGIC && is_served_by_user(request, status)) {
    file.owner.reset();
    file.copy = TRY(copy_content(request, file.fd.get(), static_cast<std::size_t>(status.st_size)));
  }
  return file;
}

Result<MappedRegion> map_foreign_file(ForeignFile& file) {
  if (file.copy) return std::move(*std::exchange(file.copy, std::nullopt));
  return MappedRegion::map_file(file.fd.get());
}

}  // namespace ddprof
