#include "base/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

namespace ddprof {

namespace {

bool is_own(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == ::geteuid();
}

// Not open if somebody else could put things into it.
UniqueFd open_own_folder(const std::string& path) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (folder.is_open() && !is_own(folder.get(), S_IFDIR)) folder.reset();
  return folder;
}

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

void make_folder(const std::string& path) {
  const std::string parent = parent_of(path);
  if (open_own_folder(parent_of(parent)).is_open()) ::mkdir(parent.c_str(), 0700);
  if (open_own_folder(parent).is_open()) ::mkdir(path.c_str(), 0700);
}

bool write_whole(int fd, std::span<const std::byte> content) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    content = content.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  make_folder(path);
  UniqueFd folder = open_own_folder(path);
  if (!folder.is_open())
    return make_error(ErrorCode::permission_denied, "open folder {}: not there or not ours", path);
  return PrivateFolder(std::move(folder));
}

Result<PrivateFolder> PrivateFolder::folder(const std::string& name) const {
  ::mkdirat(fd_.get(), name.c_str(), 0700);
  UniqueFd inner(::openat(fd_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!inner.is_open() || !is_own(inner.get(), S_IFDIR))
    return make_error(ErrorCode::permission_denied, "open folder {}: not there or not ours", name);
  return PrivateFolder(std::move(inner));
}

Result<MappedRegion> PrivateFolder::read(const std::string& name) const {
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open() || !is_own(fd.get(), S_IFREG))
    return make_error(ErrorCode::not_found, "open {}: not there or not ours", name);
  return MappedRegion::map_file(fd.get());
}

Result<std::string> PrivateFolder::read_copy(const std::string& name, std::uint64_t max_bytes) const {
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) return errno_error(errno, "open " + name);
  struct stat status {};
  if (!is_own(fd.get(), S_IFREG) || ::fstat(fd.get(), &status) != 0)
    return make_error(ErrorCode::permission_denied, "open {}: not ours", name);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_bytes)
    return make_error(ErrorCode::corrupt, "read {}: larger than {} bytes", name, max_bytes);
  std::string content(size, '\0');
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t count = ::read(fd.get(), content.data() + have, content.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return make_error(ErrorCode::corrupt, "read {}: error {}", name, errno);
    if (count == 0) break;  // it was cut meanwhile
    have += static_cast<std::size_t>(count);
  }
  content.resize(have);
  return content;
}

Result<void> PrivateFolder::write(const std::string& name, std::span<const std::byte> content,
                                  Durability durability) const {
  const std::string temporary = fmt::format(".{}.{}", name, ::getpid());
  UniqueFd fd(
      ::openat(fd_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open()) return errno_error(errno, "open " + temporary);
  const bool is_durable = durability == Durability::disk;
  if (write_whole(fd.get(), content) && (!is_durable || ::fsync(fd.get()) == 0) &&
      ::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) == 0 &&
      (!is_durable || ::fsync(fd_.get()) == 0))
    return {};
  Error error = errno_error(errno, "write " + name);
  ::unlinkat(fd_.get(), temporary.c_str(), 0);
  return error;
}

Result<void> PrivateFolder::write(const std::string& name, std::span<const std::byte> content) const {
  return write(name, content, Durability::none);
}

Result<void> PrivateFolder::write_durably(const std::string& name, std::span<const std::byte> content) const {
  return write(name, content, Durability::disk);
}

bool PrivateFolder::remove(const std::string& name) const {
  return ::unlinkat(fd_.get(), name.c_str(), 0) == 0;
}

bool PrivateFolder::is_writable() const { return ::faccessat(fd_.get(), ".", W_OK | X_OK, AT_EACCESS) == 0; }

bool PrivateFolder::is_linked() const {
  struct stat status {};
  return ::fstat(fd_.get(), &status) == 0 && status.st_nlink > 0;
}

void PrivateFolder::visit(const Visit& visit) const {
  UniqueFd copy(::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(copy.is_open() ? ::fdopendir(copy.get()) : nullptr, ::closedir);
  if (!stream) return;
  std::ignore = copy.release();  // the stream's
  while (const dirent* entry = ::readdir(stream.get())) {
    if (!visit(entry->d_name)) return;
  }
}

std::vector<PrivateFile> PrivateFolder::files() const {
  std::vector<PrivateFile> files;
  visit([&](const char* name) {
    struct stat status {};
    if (::fstatat(fd_.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid())
      files.push_back({name, static_cast<std::uint64_t>(status.st_size),
                       std::chrono::seconds(status.st_mtim.tv_sec) + Nanoseconds(status.st_mtim.tv_nsec)});
    return true;
  });
  return files;
}

bool PrivateFolder::has_file(std::string_view suffix) const {
  bool is_found = false;
  visit([&](const char* name) {
    struct stat status {};
    is_found = std::string_view(name).ends_with(suffix) &&
               ::fstatat(fd_.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
               status.st_uid == ::geteuid();
    return !is_found;
  });
  return is_found;
}

UniqueFd PrivateFolder::lock(const std::string& name, std::chrono::milliseconds patience) const {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPause = std::chrono::milliseconds(2);
  const bool is_folder = name == ".";
  const int how = is_folder ? O_DIRECTORY : O_CREAT | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | how, 0600));
  if (!fd.is_open() || !is_own(fd.get(), is_folder ? S_IFDIR : S_IFREG)) return {};
  for (const auto end = Clock::now() + patience; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK || Clock::now() >= end) return {};
    std::this_thread::sleep_for(kPause);
  }
  return fd;
}

void PrivateFolder::trim(std::uint64_t max_bytes) const {
  std::vector<PrivateFile> all = files();
  std::sort(all.begin(), all.end(), [](const PrivateFile& left, const PrivateFile& right) {
    return std::tie(left.written, left.name) > std::tie(right.written, right.name);
  });
  std::uint64_t kept = 0;
  for (const PrivateFile& file : all) {
    kept += file.bytes;
    if (kept > max_bytes) std::ignore = remove(file.name);
  }
}

}  // namespace ddprof
