#include "runtime/target_library.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/mapped_region.hpp"
#include "base/unique_fd.hpp"
#include "wire/heap.h"

extern "C" const std::byte ddprof_embedded_library[];
extern "C" const std::byte ddprof_embedded_library_end[];

namespace ddprof {

namespace {

// As ld.so reads LD_PRELOAD.
bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && path.find_first_of(" :") == std::string_view::npos;
}

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = DDPROF_HEAP_HASH_SEED;
  for (const std::byte byte : bytes) hash = ddprof_heap_hash(hash, static_cast<std::uint64_t>(byte));
  return hash;
}

// Ours alone to write, and for all to read. A folder that others may write is none: they could put another
// library there.
Result<void> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return errno_error(errno, "make folder " + path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno_error(errno, "look at " + path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return make_error(ErrorCode::permission_denied, "{} is not a folder that only this user can write", path);
  return {};
}

// What can be mapped for execution: not on a file system that is mounted noexec.
bool is_usable(const std::string& path, std::span<const std::byte> content) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0 ||
      static_cast<std::size_t>(status.st_size) != content.size())
    return false;
  void* memory = ::mmap(nullptr, content.size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED) return false;
  const bool is_same = std::equal(content.begin(), content.end(), static_cast<const std::byte*>(memory));
  ::munmap(memory, content.size());
  return is_same;
}

Result<void> write_copy(const std::string& path, std::span<const std::byte> content) {
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755));
  if (!fd.is_open()) return errno_error(errno, "write " + path);
  const bool is_written =
      ::write(fd.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
      ::fchmod(fd.get(), 0755) == 0 && ::rename(temporary.c_str(), path.c_str()) == 0;
  if (is_written) return {};
  const int reason = errno;
  ::unlink(temporary.c_str());
  return errno_error(reason, "write " + path);
}

}  // namespace

std::span<const std::byte> embedded_library() {
  return {ddprof_embedded_library, ddprof_embedded_library_end};
}

Result<std::string> provide_library(const std::string& installed, const std::vector<std::string>& folders) {
  const auto content = embedded_library();
  if (!installed.empty() && is_plain_path(installed) && ::access(installed.c_str(), R_OK) == 0)
    return installed;
  const std::string name = fmt::format("libddprof-{:016x}.so", hash_of(content));
  Error last = make_error(ErrorCode::not_found, "no place for libddprof.so");
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + name;
    if (!is_plain_path(path)) continue;
    auto made = make_folder(folder);
    if (made && !is_usable(path, content)) made = write_copy(path, content);
    if (made && is_usable(path, content)) return path;
    if (!made) last = std::move(made).error();
  }
  return last;
}

Result<std::string> provide_library() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = (program.parent_path() / "../lib/libddprof.so").lexically_normal();
  std::vector<std::string> folders;
  if (::geteuid() == 0) folders.emplace_back("/run/ddprof");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache == '/')
    folders.push_back(std::string(cache) + "/ddprof");
  else if (home != nullptr && *home == '/')
    folders.push_back(std::string(home) + "/.cache/ddprof");
  folders.push_back(fmt::format("/tmp/ddprof-{}", ::geteuid()));
  return provide_library(std::filesystem::exists(installed, error) ? installed.string() : "", folders);
}

}  // namespace ddprof
