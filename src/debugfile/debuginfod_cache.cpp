#include "debugfile/debuginfod_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

namespace filesystem = std::filesystem;
using std::chrono::seconds;

constexpr const char* kCleanInterval = "cache_clean_interval_s";
constexpr const char* kMaxUnusedAge = "max_unused_age_s";
constexpr const char* kMissAge = "cache_miss_s";

seconds age_since(const timespec& time) { return seconds(::time(nullptr) - time.tv_sec); }

// Under sudo the home directory may be another user's: root puts nothing there, for its owner could not
// remove it.
Result<void> make_own_folder(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (!S_ISDIR(status.st_mode)) return errno_error(ENOTDIR, "use " + path);
    if (::geteuid() == 0 && status.st_uid != 0) return errno_error(EPERM, "use " + path + " of another user");
    return {};
  }
  const std::string parent = path.substr(0, path.rfind('/'));
  if (!parent.empty()) TRY(make_own_folder(parent));
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(errno, "make " + path);
  return {};
}

// Files of a build id, and those that came half and were left by somebody who died.
void remove_unused(const filesystem::path& folder, seconds max_age) {
  std::error_code error;
  for (const auto& entry : filesystem::directory_iterator(folder, error)) {
    struct stat status {};
    if (::lstat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (age_since(status.st_atim) > max_age) ::unlink(entry.path().c_str());
  }
  ::rmdir(folder.c_str());  // only when nothing is left in it
}

bool is_build_id(const std::string& name) {
  return name.size() >= 4 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string DebuginfodCache::path_of(const BuildId& build_id) const {
  return folder_ + "/" + build_id.hex() + "/debuginfo";
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

Result<void> DebuginfodCache::make_folder(const BuildId& build_id) const {
  return make_own_folder(folder_ + "/" + build_id.hex());
}

Result<DebuginfodCache::Arrival> DebuginfodCache::begin(const BuildId& build_id) const {
  TRY(make_folder(build_id));
  std::string path = path_of(build_id);
  std::string temporary = path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // for us alone: 0600
  if (!fd.is_open()) return errno_error(errno, "make " + temporary);
  return Arrival(std::move(fd), std::move(temporary), std::move(path));
}

Result<void> DebuginfodCache::note_absent(const BuildId& build_id) const {
  Arrival empty = TRY(begin(build_id));
  return empty.keep();
}

void DebuginfodCache::clean() const {
  const std::string marker = folder_ + "/" + kCleanInterval;
  struct stat status {};
  if (::stat(marker.c_str(), &status) != 0) {
    const UniqueFd fd(::open(marker.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.is_open() && ::write(fd.get(), "86400\n", 6) != 6) ::unlink(marker.c_str());
    return;
  }
  if (::geteuid() != status.st_uid) return;
  if (age_since(status.st_mtim) < number_in(kCleanInterval, seconds(86400))) return;
  ::utimensat(AT_FDCWD, marker.c_str(), nullptr, 0);
  const seconds max_age = number_in(kMaxUnusedAge, seconds(604800));
  std::error_code error;
  for (const auto& entry : filesystem::directory_iterator(folder_, error)) {
    if (is_build_id(entry.path().filename().string()) && entry.is_directory(error))
      remove_unused(entry.path(), max_age);
  }
}

DebuginfodCache::Arrival::Arrival(UniqueFd fd, std::string temporary, std::string path)
    : fd_(std::move(fd)), temporary_(std::move(temporary)), path_(std::move(path)) {}

DebuginfodCache::Arrival::~Arrival() {
  if (!fd_.is_open()) return;
  ::unlink(temporary_.c_str());
  ::rmdir(temporary_.substr(0, temporary_.rfind('/')).c_str());  // only when nothing is left in it
}

Result<void> DebuginfodCache::Arrival::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return errno_error(errno, "write " + temporary_);
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return {};
}

Result<void> DebuginfodCache::Arrival::restart() {
  if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0)
    return errno_error(errno, "empty " + temporary_);
  return {};
}

Result<void> DebuginfodCache::Arrival::keep() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error(errno, "rename to " + path_);
  fd_.reset();
  return {};
}

}  // namespace ddprof
