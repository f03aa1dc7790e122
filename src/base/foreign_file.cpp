#include "base/foreign_file.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/call_within.hpp"
#include "base/mounts.hpp"
#include "base/read_file.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kInvalidId = ~0U;  // changes nothing: the call answers which one we have

std::uint32_t file_user() { return static_cast<std::uint32_t>(::syscall(SYS_setfsuid, kInvalidId)); }
std::uint32_t file_group() { return static_cast<std::uint32_t>(::syscall(SYS_setfsgid, kInvalidId)); }

// The C library's functions would change all threads; these are the calls of one.
bool become(const UserRights& rights) {
  if (::syscall(SYS_setgroups, rights.groups.size(), rights.groups.data()) != 0) return false;
  ::syscall(SYS_setfsgid, rights.group);
  ::syscall(SYS_setfsuid, rights.user);
  return file_user() == rights.user && file_group() == rights.group;
}

bool drop_effective_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
  for (auto& set : sets) set.effective = 0;
  return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

}  // namespace

bool take_on(const UserRights& rights) {
  const int dumpable = ::prctl(PR_GET_DUMPABLE);
  const bool is_user = become(rights);
  // The kernel makes a process that changes users undumpable, all of its threads.
  if (dumpable == 1) ::prctl(PR_SET_DUMPABLE, 1);
  return drop_effective_capabilities() && (is_user || file_user() != 0);
}

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

namespace {

bool is_within(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/');
}

PatientOpener::HungPlace place_now(const FileRequest& request) {
  return place_of(request, read_file(request.mounts).value_or({}));
}

}  // namespace

std::size_t PatientOpener::hung_calls_of(std::uint32_t user) const {
  return static_cast<std::size_t>(
      std::count_if(hung_places_.begin(), hung_places_.end(),
                    [user](const HungPlace& place) { return place.user == user; }));
}

bool PatientOpener::is_left_alone(const HungPlace& place, std::string_view path) const {
  if (hung_places_.size() >= kMaxHungCalls) return true;
  if (place.user != 0 && hung_calls_of(place.user) >= kMaxHungCallsOfUser) return true;
  return std::any_of(hung_places_.begin(), hung_places_.end(), [&](const HungPlace& hung) {
    return hung.user == place.user && is_within(path, hung.path);
  });
}

std::vector<PatientOpener::HungPlace> PatientOpener::hung_places() const {
  const std::lock_guard lock(mutex_);
  return hung_places_;
}

std::optional<std::chrono::milliseconds> PatientOpener::patience_for(const HungPlace& place,
                                                                     std::string_view path) const {
  const std::lock_guard lock(mutex_);
  if (is_left_alone(place, path)) return std::nullopt;
  return patience_ / (1U << std::min<std::size_t>(hung_calls_of(place.user), 6));
}

Result<ForeignFile> PatientOpener::open(const FileRequest& request) {
  const std::string path = request.root + request.path;
  std::optional<HungPlace> place;  // costs a mount table: only when something has hung
  if (!hung_places().empty()) place = place_now(request);
  const auto patience = place ? patience_for(*place, path) : patience_;
  if (!patience) return make_error(ErrorCode::exhausted, "open {}: its file system hung before", path);
  auto opened = call_within(*patience, [open = open_, request] { return open(request); });
  if (opened) return std::move(*opened);
  if (!place) place = place_now(request);
  const std::lock_guard lock(mutex_);
  hung_places_.push_back(*place);
  return make_error(ErrorCode::exhausted, "open {}: its file system hangs, {} is left alone from now on",
                    path, place->path);
}

PatientOpener::HungPlace place_of(const FileRequest& request, std::string_view mountinfo) {
  // Not /proc hangs, but where the link leads.
  if (request.links == FileRequest::Links::of_kernel) return {request.path, request.user};
  const auto mount = find_mount(request.path, mountinfo);
  const std::string_view path = request.path;
  const std::string_view point = mount ? mount->point : path.substr(0, path.rfind('/') + 1);
  const std::uint32_t server = mount ? mount->server.value_or(0) : 0;
  return {request.root + std::string(point), server != 0 ? server : request.user};
}

}  // namespace ddprof
