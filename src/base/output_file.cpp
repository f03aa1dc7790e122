#include "base/output_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>
#include <thread>
#include <tuple>

#include "base/call_within.hpp"

namespace ddprof {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kMostLinks = 40;  // as many as the kernel follows
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Where a path leads: a name in a folder.
struct Place {
  UniqueFd folder;
  std::string name;
};

enum class LastLink : std::uint8_t { stays, is_followed };

// A path on its way.
class Walk {
 public:
  Walk(std::string path, MissingFolders missing, const std::string& behind = "")
      : path_(std::move(path)), rest_(path_ + behind), missing_(missing) {}

  Result<Place> run(LastLink last) {
    begin();
    while (links_ <= kMostLinks) {
      if (!place_.folder.is_open()) return errno_error(errno, "open " + path_);
      place_.name = take_name();
      if (rest_.empty() && last == LastLink::stays) return std::move(place_);
      struct stat status {};
      if (::fstatat(place_.folder.get(), place_.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) return errno_error(errno, "open " + path_);
        if (rest_.empty()) return std::move(place_);
        TRY(make_folder());
      } else if (S_ISLNK(status.st_mode)) {
        TRY(follow_link(status));
        continue;
      } else if (rest_.empty()) {
        return std::move(place_);
      }
      place_.folder = UniqueFd(::openat(place_.folder.get(), place_.name.c_str(), kFolderFlags));
    }
    return errno_error(ELOOP, "open " + path_);
  }

 private:
  void begin() { place_.folder = UniqueFd(::open(rest_.starts_with('/') ? "/" : ".", kFolderFlags)); }

  std::string take_name() {
    const std::size_t first = std::min(rest_.find_first_not_of('/'), rest_.size());
    const std::size_t end = std::min(rest_.find('/', first), rest_.size());
    std::string name = rest_.substr(first, end - first);
    rest_.erase(0, std::min(rest_.find_first_not_of('/', end), rest_.size()));
    return name.empty() ? "." : name;
  }

  Result<void> make_folder() {
    if (missing_ == MissingFolders::fail) return errno_error(ENOENT, "open " + path_);
    struct stat parent {};
    if (missing_ == MissingFolders::make_if_safe &&
        (::fstat(place_.folder.get(), &parent) != 0 || !is_trusted_owner(parent.st_uid)))
      return make_error(ErrorCode::permission_denied, "create {}: {} would be in a folder of user {}", path_,
                        place_.name, parent.st_uid);
    if (::mkdirat(place_.folder.get(), place_.name.c_str(), 0700) == 0 || errno == EEXIST) return {};
    return errno_error(errno, "create " + path_);
  }

  Result<void> follow_link(const struct stat& link) {
    if (!is_trusted_owner(link.st_uid))
      return with_hint(make_error(ErrorCode::permission_denied, "open {}: {} is a link of user {}", path_,
                                  place_.name, link.st_uid),
                       "name the place that it leads to");
    std::array<char, 4096> target;
    const ssize_t size = ::readlinkat(place_.folder.get(), place_.name.c_str(), target.data(), target.size());
    if (size < 0) return errno_error(errno, "open " + path_);
    std::string behind = rest_.empty() ? "" : "/" + rest_;
    rest_ = std::string(target.data(), static_cast<std::size_t>(size)) + behind;
    ++links_;
    if (rest_.starts_with('/')) begin();
    return {};
  }

  std::string path_, rest_;
  MissingFolders missing_;
  Place place_;
  int links_ = 0;
};

// Where everybody may put files.
bool is_shared(int folder) {
  struct stat status {};
  return ::fstat(folder, &status) != 0 || (status.st_mode & S_IWOTH) != 0;
}

// Whether the user can have meant what has this name: in a shared folder it may be planted.
bool may_be_meant(int folder, const struct stat& found) {
  return is_trusted_owner(found.st_uid) || !is_shared(folder);
}

std::string kind_of(const struct stat& found) {
  if (S_ISDIR(found.st_mode)) return "directory";
  if (S_ISBLK(found.st_mode)) return "block device";
  return S_ISSOCK(found.st_mode) ? "socket" : "special file";
}

// A descriptor that we have already: opening it anew fails for a socket, and for a pipe of another user.
std::optional<int> own_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int fd = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), fd);
    if (error == std::errc{} && end == digits.data() + digits.size()) return fd;
  }
  return std::nullopt;
}

// False, and errno says why. Without a deadline a non-blocking descriptor fails where it would have to wait.
bool write_whole(int fd, std::string_view content,
                 std::optional<SteadyClock::time_point> deadline = std::nullopt) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count >= 0) {
      content.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN && deadline) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - SteadyClock::now());
      pollfd waiter{.fd = fd, .events = POLLOUT, .revents = 0};
      if (left.count() <= 0 || ::poll(&waiter, 1, static_cast<int>(left.count())) == 0) {
        errno = ETIMEDOUT;
        return false;
      }
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// A FIFO without a reader cannot be opened without waiting: ENXIO.
UniqueFd open_special(int folder, const std::string& name, SteadyClock::time_point deadline) {
  constexpr auto kPause = std::chrono::milliseconds(20);
  constexpr int kFlags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  while (true) {
    UniqueFd fd(::openat(folder, name.c_str(), kFlags));
    if (fd.is_open() || errno != ENXIO || SteadyClock::now() >= deadline) return fd;
    std::this_thread::sleep_for(kPause);
  }
}

Result<void> write_special(const OutputFolder& folder, const std::string& name, const struct stat& found,
                           std::string_view content, std::chrono::milliseconds patience) {
  const std::string path = folder.path_of(name);
  if (!S_ISFIFO(found.st_mode) && !S_ISCHR(found.st_mode))
    return make_error(ErrorCode::invalid_argument, "write {}: is a {}", path, kind_of(found));
  const auto deadline = SteadyClock::now() + patience;
  const UniqueFd fd = open_special(folder.fd(), name, deadline);
  if (!fd.is_open() && errno == ENXIO && S_ISFIFO(found.st_mode))
    return make_error(ErrorCode::failed, "write {}: nothing reads this FIFO", path);
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  struct stat opened {};
  if (::fstat(fd.get(), &opened) != 0 || opened.st_ino != found.st_ino || opened.st_dev != found.st_dev)
    return make_error(ErrorCode::failed, "write {}: it was replaced meanwhile", path);
  if (write_whole(fd.get(), content, deadline)) return {};
  if (errno == ETIMEDOUT) return make_error(ErrorCode::failed, "write {}: its reader takes nothing", path);
  return errno_error(errno, "write " + path);
}

Result<UniqueFd> open_log(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const Place place = TRY(Walk(path, MissingFolders::fail).run(LastLink::is_followed));
  UniqueFd fd(::openat(place.folder.get(), place.name.c_str(), kFlags, 0600));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) return errno_error(errno, "open " + path);
  if (S_ISBLK(status.st_mode) || !may_be_meant(place.folder.get(), status))
    return make_error(ErrorCode::permission_denied, "open {}: is a {} of user {}", path,
                      S_ISREG(status.st_mode) ? "file" : kind_of(status), status.st_uid);
  // A second name that another user gave to a file of ours.
  if (S_ISREG(status.st_mode) && status.st_nlink > 1)
    return make_error(ErrorCode::permission_denied, "open {}: this file has other names too", path);
  return fd;
}

}  // namespace

bool is_trusted_owner(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<OutputFolder> OutputFolder::open(const std::string& path, MissingFolders missing) {
  Place place = TRY(Walk(path, missing, "/.").run(LastLink::stays));
  // Files can be put into a folder that cannot be listed.
  UniqueFd readable(::openat(place.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return OutputFolder(readable.is_open() ? std::move(readable) : std::move(place.folder), path);
}

// The number at the end: processes of two containers may share both a folder and a number.
Result<std::string> OutputFolder::write_temporary(const std::string& name, std::string_view content,
                                                  Durability durability) const {
  constexpr std::size_t kLongestStem = 200;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  std::string temporary =
      fmt::format(".{}.{}.{:08x}.tmp", name.substr(0, kLongestStem), ::getpid(), std::random_device{}());
  UniqueFd fd(::openat(fd_.get(), temporary.c_str(), kFlags, 0600));
  if (!fd.is_open()) return errno_error(errno, "write " + path_of(name));
  if (write_whole(fd.get(), content) && (durability == Durability::none || ::fsync(fd.get()) == 0) &&
      ::close(fd.release()) == 0)
    return temporary;
  Error error = errno_error(errno, "write " + path_of(name));
  std::ignore = remove(temporary);
  return error;
}

Result<void> OutputFolder::replace(const std::string& name, std::string_view content,
                                   Durability durability) const {
  const std::string temporary = TRY(write_temporary(name, content, durability));
  if (::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) == 0 &&
      (durability == Durability::none || ::fsync(fd_.get()) == 0))
    return {};
  Error error = errno_error(errno, "write " + path_of(name));
  std::ignore = remove(temporary);
  return error;
}

Result<bool> OutputFolder::create(const std::string& name, std::string_view content) const {
  const std::string temporary = TRY(write_temporary(name, content, Durability::none));
  const auto rename = [&] { return ::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) == 0; };
  const auto take_name = [&] {
    return UniqueFd(::openat(fd_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600))
        .is_open();
  };
  int failed = 0;
  if (::renameat2(fd_.get(), temporary.c_str(), fd_.get(), name.c_str(), RENAME_NOREPLACE) != 0)
    failed = errno;
  // NFS and some others cannot do that. There the name is taken first, by an empty file.
  if (failed == EINVAL || failed == ENOSYS) failed = take_name() && rename() ? 0 : errno;
  if (failed == 0) return true;
  std::ignore = remove(temporary);
  if (failed == EEXIST) return false;
  return errno_error(failed, "write " + path_of(name));
}

Result<UniqueFd> OutputFolder::unnamed_file() const {
  // Not O_TMPFILE, which overlayfs and others do not have.
  const std::string name = fmt::format(".unnamed.{}.{:08x}.tmp", ::getpid(), std::random_device{}());
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open() || ::unlinkat(fd_.get(), name.c_str(), 0) != 0)
    return errno_error(errno, "write " + path_of(name));
  return fd;
}

Result<UniqueFd> OutputFolder::open_own(const std::string& name) const {
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.is_open()) return errno_error(errno, "open " + path_of(name));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "open " + path_of(name));
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return make_error(ErrorCode::permission_denied, "open {}: not a file of this user", path_of(name));
  return fd;
}

Result<std::string> OutputFolder::read_own(const std::string& name, std::uint64_t max_bytes) const {
  const UniqueFd fd = TRY(open_own(name));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "read " + path_of(name));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_bytes)
    return make_error(ErrorCode::corrupt, "read {}: larger than {} bytes", path_of(name), max_bytes);
  std::string content(size, '\0');
  std::size_t have = 0;
  while (have < content.size()) {
    const ssize_t count = ::read(fd.get(), content.data() + have, content.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read " + path_of(name));
    if (count == 0) break;  // it was cut meanwhile
    have += static_cast<std::size_t>(count);
  }
  content.resize(have);
  return content;
}

bool OutputFolder::has(const std::string& name, struct stat& status) const {
  return ::fstatat(fd_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool OutputFolder::remove(const std::string& name) const {
  return ::unlinkat(fd_.get(), name.c_str(), 0) == 0;
}

Error does_not_answer(const std::string& operation) {
  return make_error(ErrorCode::exhausted, "{}: the file system does not answer", operation);
}

Result<void> write_output(const std::string& path, std::string_view content,
                          std::chrono::milliseconds patience) {
  if (const auto fd = own_descriptor(path)) {
    if (write_whole(*fd, content, SteadyClock::now() + patience)) return {};
    return errno_error(errno, "write " + path);
  }
  const auto [folder_path, name] = split_path(path);
  const auto folder = OutputFolder::open(folder_path);
  if (!folder) return folder.error();
  struct stat found {};
  const bool is_plain = !folder->has(name, found) || S_ISREG(found.st_mode) || S_ISLNK(found.st_mode);
  if (!is_plain && may_be_meant(folder->fd(), found))
    return write_special(*folder, name, found, content, patience);
  return folder->replace(name, content);
}

namespace {

Result<void> check_place(const std::string& path) {
  constexpr const char* kHint = "choose another place with --output FILE";
  if (own_descriptor(path)) return {};
  const auto [folder_path, name] = split_path(path);
  auto folder = OutputFolder::open(folder_path);
  if (!folder) {
    Error error = std::move(folder).error();
    error.message = fmt::format("write {}: {}", path, error.message.substr(error.message.rfind(": ") + 2));
    return with_hint(error, error.hint.empty() ? kHint : error.hint);
  }
  struct stat found {};
  if (folder->has(name, found)) {
    if (S_ISDIR(found.st_mode))
      return make_error(ErrorCode::invalid_argument, "write {}: is a directory", path);
    const bool is_meant = !S_ISLNK(found.st_mode) && may_be_meant(folder->fd(), found);
    if (is_meant && (S_ISBLK(found.st_mode) || S_ISSOCK(found.st_mode)))
      return make_error(ErrorCode::invalid_argument, "write {}: is a {}", path, kind_of(found));
    if (is_meant && ::faccessat(folder->fd(), name.c_str(), W_OK, AT_EACCESS) != 0)
      return errno_error(errno, "write " + path);
    if (is_meant && !S_ISREG(found.st_mode)) return {};
  }
  if (::faccessat(folder->fd(), ".", W_OK | X_OK, AT_EACCESS) == 0) return {};
  return with_hint(errno_error(errno, "write " + path), kHint);
}

}  // namespace

Result<void> check_writable(const std::string& path) {
  constexpr std::chrono::milliseconds kPatience(1000);
  auto checked = call_within(kPatience, [path] { return check_place(path); });
  return checked ? std::move(*checked) : does_not_answer("write " + path);
}

Result<void> append_line(const std::string& path, std::string_view line) {
  const UniqueFd fd = TRY(open_log(path));
  if (write_whole(fd.get(), line)) return {};
  return errno_error(errno, "write " + path);
}

Result<void> check_log(const std::string& path) {
  TRY(open_log(path));
  return {};
}

}  // namespace ddprof
