#include "process/file_provider.hpp"

#include <absl/container/flat_hash_map.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/mounts.hpp"
#include "elf/elf_file.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

std::optional<ProcessUser> parse_process_user(std::string_view status) {
  const auto users = status_numbers(status, "Uid");  // real, effective, saved, of the file system
  const auto groups = status_numbers(status, "Gid");
  const auto pids = status_numbers(status, "NSpid");
  if (users.size() < 4 || groups.size() < 4) return std::nullopt;
  ProcessUser user{{users[3], groups[3], status_numbers(status, "Groups")}, 0};
  if (!pids.empty()) user.inner_pid = static_cast<std::int32_t>(pids.back());
  return user;
}

std::optional<ProcessUser> read_process_user(Pid pid) {
  const auto status = read_proc_file(pid, "status");
  auto user = status ? parse_process_user(*status) : std::nullopt;
  if (user && user->inner_pid == 0) user->inner_pid = to_int(pid);
  return user;
}

std::optional<std::uint32_t> find_user_of(Pid pid) {
  struct stat status {};
  if (::stat(proc_path(pid).c_str(), &status) != 0) return std::nullopt;
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

std::string TargetRoot::path() const { return proc_path(Pid{::getpid()}, fmt::format("fd/{}", fd_.get())); }

TargetRoots::Key TargetRoots::key_of(Pid pid) {
  struct statx root {};
  // As the kernel remembers it: a root on a file system that hangs must not hang us.
  if (::statx(AT_FDCWD, proc_path(pid, "root/").c_str(), AT_STATX_DONT_SYNC, STATX_INO, &root) != 0)
    return {};
  return {read_proc_link(pid, "ns/mnt"), (std::uint64_t{root.stx_dev_major} << 32U) | root.stx_dev_minor,
          root.stx_ino};
}

Result<std::shared_ptr<const TargetRoot>> TargetRoots::find_or_open(Pid pid) {
  const Key key = key_of(pid);
  if (key == Key()) return errno_error(ESRCH, "find root of " + proc_path(pid));
  if (key == key_of(Pid{::getpid()})) return std::shared_ptr<const TargetRoot>();
  if (auto known = roots_.find(key); known != roots_.end()) {
    if (auto root = known->second.lock()) return root;
  }
  std::erase_if(roots_, [](const auto& entry) { return entry.second.expired(); });
  UniqueFd fd;
  if (roots_.size() < kMaxRoots)
    fd = UniqueFd(::open(proc_path(pid, "root/").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const bool is_held = fd.is_open();
  auto root = std::make_shared<const TargetRoot>(std::move(fd));
  if (is_held) roots_[key] = root;
  return root;
}

bool sees_our_root(Pid pid) {
  const auto key = TargetRoots::key_of(pid);
  return key != TargetRoots::Key() && key == TargetRoots::key_of(Pid{::getpid()});
}

namespace {

// The kernel's own link to a mapped file, which leads there even when the file was deleted or replaced.
std::string map_files_path(const MappedFile& file) {
  return proc_path(file.pid, fmt::format("map_files/{:x}-{:x}", file.start.value, file.end.value));
}

// As the process sees it. It may be any user's process, so it must be that user's file.
FileRequest request_of(Pid pid, std::uint32_t user, std::string path) {
  FileRequest request{.path = std::move(path)};
  request.links = FileRequest::Links::last_refused;
  request.user = user;
  request.mounts = proc_path(pid, "mountinfo");
  if (!sees_our_root(pid)) request.root = proc_path(pid, "root");
  return request;
}

FileRequest own_request(std::string path, std::uint32_t user) {
  FileRequest request{.path = std::move(path)};
  request.links = FileRequest::Links::last_refused;
  request.user = user;
  return request;
}

}  // namespace

bool is_jit_dump_path(std::string_view path) {
  constexpr std::string_view kPrefix = "jit-";
  constexpr std::string_view kSuffix = ".dump";
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  if (!path.starts_with(kPrefix) || !path.ends_with(kSuffix)) return false;
  if (path.size() <= kPrefix.size() + kSuffix.size()) return false;
  const auto digits = path.substr(kPrefix.size(), path.size() - kPrefix.size() - kSuffix.size());
  return digits.find_first_not_of("0123456789") == std::string_view::npos;
}

Result<JitFile> JitFile::open(PatientOpener& opener, const FileRequest& request) {
  ForeignFile file = TRY(opener.open(request));
  const std::string path = request.root + request.path;
  if (file.user != request.user)
    return make_error(ErrorCode::permission_denied,
                      "open {}: refused, it belongs to user {}, and the process to user {}", path, file.user,
                      request.user);
  return JitFile(std::move(file.fd), path);
}

Result<JitFile> JitFile::open_jit_names(PatientOpener& opener, Pid pid) {
  const auto user = read_process_user(pid);
  const std::string outside = fmt::format("/tmp/perf-{}.map", to_int(pid));
  if (!user) return open(opener, own_request(outside, ::geteuid()));
  const std::uint32_t owner = user->rights.user;
  auto inside = open(opener, request_of(pid, owner, fmt::format("/tmp/perf-{}.map", user->inner_pid)));
  if (inside || inside.error().code != ErrorCode::not_found) return inside;
  return open(opener, own_request(outside, owner));
}

Result<JitFile> JitFile::open_dump(PatientOpener& opener, const MappedFile& file) {
  const auto user = read_process_user(file.pid);
  if (!user) return open(opener, own_request(file.identity.path, ::geteuid()));
  FileRequest request = request_of(file.pid, user->rights.user, file.identity.path);
  auto dump = open(opener, request);
  if (dump || dump.error().code != ErrorCode::not_found) return dump;
  // Deleted: the link is the kernel's own, and must be followed.
  request.root.clear();
  request.links = FileRequest::Links::of_kernel;
  request.path = map_files_path(file);
  auto mapped = open(opener, request);
  return mapped ? std::move(mapped) : std::move(dump);
}

Result<std::uint64_t> JitFile::size() const {
  struct statx status {};
  if (::statx(fd_.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_SIZE, &status) != 0)
    return errno_error(errno, "stat " + path_);
  return status.stx_size;
}

Result<std::size_t> JitFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t count =
        ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read " + path_);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

Result<std::string> JitFile::read_all(std::size_t max_bytes) const {
  const std::uint64_t bytes = TRY(size());
  if (bytes > max_bytes)
    return make_error(ErrorCode::exhausted, "read {}: larger than {} bytes", path_, max_bytes);
  std::string text(bytes, '\0');
  text.resize(TRY(read(0, std::as_writable_bytes(std::span(text)))));
  return text;
}

namespace {

FileRequest request_of(const MappedFile& file) {
  const FileIdentity& identity = file.identity;
  FileRequest request{.path = identity.path};
  request.inode = identity.inode;
  request.device = ::makedev(identity.device_major, identity.device_minor);
  return request;
}

bool has_build_id(const MappedRegion& region, const BuildId& build_id) {
  if (build_id.empty()) return true;
  const auto elf = ElfFile::parse(region.bytes());
  return elf && elf->build_id() == build_id;
}

// /proc/PID/maps has paths as we see them, records have them as the process does: below its root.
std::string path_below_root(Pid pid, const std::string& path) {
  const std::string root = read_proc_link(pid, "root");
  return root.size() > 1 && path.starts_with(root + "/") ? path.substr(root.size()) : path;
}

// Whether a path is where a user's program answers for the files.
bool is_served_by_user(const std::string& path) {
  const auto mounts = read_proc_file(Pid{::getpid()}, "mountinfo");
  const auto mount = mounts ? find_mount(path, *mounts) : std::nullopt;
  return mount && mount->server.value_or(0) != 0;
}

}  // namespace

// What the threads that open files share.
class ProcFileProvider::Files {
 public:
  Result<CodeImage> open(const MappedFile& file, const std::optional<UserRights>& user,
                         const Result<std::shared_ptr<const TargetRoot>>& root);
  Result<CodeImage> open_jit_dump(const MappedFile& file) {
    return CodeImage{.dump = TRY(JitFile::open_dump(opener_, file))};
  }

 private:
  Result<CodeImage> try_open(const FileRequest& request, const MappedFile& file);
  Result<CodeImage> open_of_process(const MappedFile& file, const UserRights& user,
                                    std::shared_ptr<const TargetRoot> root);
  // Of a process that is gone, or not ours to look into.
  Result<CodeImage> open_of_unknown(const MappedFile& file);
  [[nodiscard]] std::size_t copyable_bytes(std::uint32_t user) const;
  void count_copied(std::uint32_t user, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    copied_bytes_[user] += bytes;
  }

  PatientOpener opener_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::uint32_t, std::size_t> copied_bytes_;  // by user; under the mutex
};

std::size_t ProcFileProvider::Files::copyable_bytes(std::uint32_t user) const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto& [id, bytes] : copied_bytes_) all += bytes;
  const auto known = copied_bytes_.find(user);
  const std::size_t own = known != copied_bytes_.end() ? known->second : 0;
  return std::min(kMaxCopiedBytesOfUser - std::min(own, kMaxCopiedBytesOfUser),
                  kMaxCopiedBytes - std::min(all, kMaxCopiedBytes));
}

Result<CodeImage> ProcFileProvider::Files::try_open(const FileRequest& request, const MappedFile& file) {
  auto opened = opener_.open(request);
  if (!opened && opened.error().code == ErrorCode::exhausted)
    count_copied(request.user, request.max_copied_bytes);  // the thread that hangs may hold them
  if (!opened) return std::move(opened).error();
  if (opened->copy) count_copied(request.user, opened->copy->size());
  MappedRegion region = TRY(map_foreign_file(*opened));
  if (!has_build_id(region, file.identity.build_id))
    return make_error(ErrorCode::not_found, "open {}: of another build", request.path);
  return CodeImage{.path = file.identity.path, .region = std::move(region), .owner = opened->owner};
}

Result<CodeImage> ProcFileProvider::Files::open_of_process(const MappedFile& file, const UserRights& user,
                                                           std::shared_ptr<const TargetRoot> root) {
  FileRequest request = request_of(file);
  request.user = user.user;
  request.mounts = proc_path(file.pid, "mountinfo");
  request.max_copied_bytes = copyable_bytes(user.user);
  FileRequest mapped = request;
  mapped.links = FileRequest::Links::of_kernel;
  mapped.path = map_files_path(file);
  // As the record has it, without links: a link there was put there since.
  request.links = FileRequest::Links::refused;
  if (root) {
    request.root = root->path();
    request.path = path_below_root(file.pid, request.path);
  }
  if (user.user != ::geteuid()) request.rights = user;

  auto image = try_open(request, file);
  const bool is_refused = !image && image.error().code == ErrorCode::permission_denied;
  if (!image && image.error().code != ErrorCode::exhausted) image = try_open(mapped, file);
  if (!image && is_refused && request.rights) {  // a user whom we may not become
    request.rights.reset();
    image = try_open(request, file);
  }
  if (!image) return image;
  image->path = request.path;
  image->root = std::move(root);
  image->rights = rights_of_writer(image->owner, user);
  return image;
}

Result<CodeImage> ProcFileProvider::Files::open_of_unknown(const MappedFile& file) {
  if (is_served_by_user(file.identity.path))
    return make_error(ErrorCode::unsupported, "open {}: its file system is a user's", file.identity.path);
  FileRequest request = request_of(file);
  request.links = FileRequest::Links::refused;
  request.user = kNoGroup;
  CodeImage image = TRY(try_open(request, file));
  image.rights = rights_of_writer(image.owner, std::nullopt);
  return image;
}

Result<CodeImage> ProcFileProvider::Files::open(const MappedFile& file, const std::optional<UserRights>& user,
                                                const Result<std::shared_ptr<const TargetRoot>>& root) {
  auto image = user && root ? open_of_process(file, *user, *root) : open_of_unknown(file);
  if (image || image.error().code == ErrorCode::exhausted) return image;
  return make_error(ErrorCode::not_found, "open {}: gone or replaced since it was mapped",
                    file.identity.path);
}

ProcFileProvider::ProcFileProvider() : files_(std::make_shared<Files>()) {}

FileProvider::Open ProcFileProvider::prepare(const MappedFile& file) {
  if (is_jit_dump_path(file.identity.path))
    return [files = files_, file] { return files->open_jit_dump(file); };
  std::optional<UserRights> user;
  if (auto known = read_process_user(file.pid)) user = std::move(known->rights);
  return [files = files_, file, user = std::move(user), root = roots_.find_or_open(file.pid)] {
    return files->open(file, user, root);
  };
}

}  // namespace ddprof
