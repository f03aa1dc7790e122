#include "debugfile/debuginfod_cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <random>
#include <tuple>
#include <utility>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

using std::chrono::seconds;

constexpr const char* kFileName = "debuginfo";
constexpr const char* kCleanInterval = "cache_clean_interval_s";
constexpr const char* kMaxUnusedAge = "max_unused_age_s";
constexpr const char* kMissAge = "cache_miss_s";

seconds age_since(const timespec& time) { return seconds(::time(nullptr) - time.tv_sec); }

template <typename Visit>
void for_each_name(int folder, Visit visit) {
  UniqueFd copy(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> stream(copy.is_open() ? ::fdopendir(copy.get()) : nullptr, ::closedir);
  if (!stream) return;
  std::ignore = copy.release();  // the stream's
  while (const dirent* entry = ::readdir(stream.get())) visit(entry->d_name);
}

// Files of a build id, and those that came half and were left by a process that died.
void remove_unused(const OutputFolder& cache, const std::string& name, seconds max_age) {
  const UniqueFd folder(::openat(cache.fd(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.is_open()) return;
  for_each_name(folder.get(), [&](const char* file) {
    struct stat status {};
    if (::fstatat(folder.get(), file, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == ::geteuid() && age_since(status.st_atim) > max_age)
      ::unlinkat(folder.get(), file, 0);
  });
  ::unlinkat(cache.fd(), name.c_str(), AT_REMOVEDIR);  // only when nothing is left in it
}

bool is_build_id(const std::string& name) {
  return name.size() >= 4 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string DebuginfodCache::path_of(const BuildId& build_id) const {
  return fmt::format("{}/{}/{}", folder_, build_id.hex(), kFileName);
}

seconds DebuginfodCache::number_in(const char* name, seconds otherwise) const {
  const std::string text = read_file(folder_ + "/" + name, 64).value_or({});
  long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && number >= 0 ? seconds(number) : otherwise;
}

seconds DebuginfodCache::miss_age() const { return number_in(kMissAge, seconds(600)); }

DebuginfodCache::Entry DebuginfodCache::find(const BuildId& build_id) const {
  struct stat status {};
  if (::stat(path_of(build_id).c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return Entry::none;
  if (status.st_size > 0) return Entry::present;
  return age_since(status.st_mtim) <= miss_age() ? Entry::known_absent : Entry::none;
}

// Under sudo the home directory may be another user's: root puts nothing there, for its owner could not
// remove it. The cache of a whole machine is root's.
Result<DebuginfodCache::Arrival> DebuginfodCache::begin(const BuildId& build_id) const {
  const std::string path = folder_ + "/" + build_id.hex();
  OutputFolder folder = TRY(OutputFolder::open(path, MissingFolders::make_if_safe));
  struct stat status {};
  if (::fstat(folder.fd(), &status) != 0 || !is_trusted_owner(status.st_uid))
    return make_error(ErrorCode::permission_denied, "use {}: it is another user's", path);
  std::string temporary = fmt::format("{}.{:08x}", kFileName, std::random_device{}());
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(::openat(folder.fd(), temporary.c_str(), kFlags, 0600));
  if (!fd.is_open()) return errno_error(errno, "make " + folder.path_of(temporary));
  return Arrival(std::move(fd), std::move(folder), std::move(temporary));
}

Result<void> DebuginfodCache::note_absent(const BuildId& build_id) const {
  Arrival empty = TRY(begin(build_id));
  return empty.keep();
}

void DebuginfodCache::clean() const {
  const auto folder = OutputFolder::open(folder_);
  if (!folder) return;
  struct stat status {};
  if (!folder->has(kCleanInterval, status)) {
    std::ignore = folder->create(kCleanInterval, "86400\n");
    return;
  }
  if (::geteuid() != status.st_uid || !S_ISREG(status.st_mode)) return;
  if (age_since(status.st_mtim) < number_in(kCleanInterval, seconds(86400))) return;
  ::utimensat(folder->fd(), kCleanInterval, nullptr, AT_SYMLINK_NOFOLLOW);
  const seconds max_age = number_in(kMaxUnusedAge, seconds(604800));
  for_each_name(folder->fd(), [&](const char* name) {
    if (is_build_id(name)) remove_unused(*folder, name, max_age);
  });
}

DebuginfodCache::Arrival::Arrival(UniqueFd fd, OutputFolder folder, std::string temporary)
    : fd_(std::move(fd)), folder_(std::move(folder)), temporary_(std::move(temporary)) {}

DebuginfodCache::Arrival::~Arrival() {
  if (!fd_.is_open()) return;
  std::ignore = folder_.remove(temporary_);
  ::rmdir(folder_.path().c_str());  // only when nothing is left in it
}

Result<void> DebuginfodCache::Arrival::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno_error(errno, "write " + folder_.path_of(temporary_));
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return {};
}

Result<void> DebuginfodCache::Arrival::restart() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0)
    return errno_error(errno, "empty " + folder_.path_of(temporary_));
  return {};
}

Result<void> DebuginfodCache::Arrival::keep() {
  if (::renameat(folder_.fd(), temporary_.c_str(), folder_.fd(), kFileName) != 0)
    return errno_error(errno, "rename to " + folder_.path_of(kFileName));
  fd_.reset();
  return {};
}

}  // namespace ddprof
