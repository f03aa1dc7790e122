#include "process/jit_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

struct ProcessFacts {
  std::uint32_t user = 0;
  std::int32_t inner_pid = 0;  // in its own namespace
};

// The numbers behind "Key:" of a /proc/PID/status, divided by tabs.
std::vector<std::uint32_t> numbers_behind(std::string_view status, std::string_view key) {
  std::vector<std::uint32_t> numbers;
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return numbers;
  std::string_view line = status.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  while (!line.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of("\t "), line.size()));
    std::uint32_t number = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
  }
  return numbers;
}

std::optional<ProcessFacts> read_facts(Pid pid) {
  const auto status = read_file(fmt::format("/proc/{}/status", to_int(pid)));
  if (!status) return std::nullopt;
  const auto users = numbers_behind(*status, "\nUid:");  // real, effective, saved, of the file system
  const auto pids = numbers_behind(*status, "\nNSpid:");
  if (users.size() < 4) return std::nullopt;
  return ProcessFacts{users[3], pids.empty() ? to_int(pid) : static_cast<std::int32_t>(pids.back())};
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

Result<JitFile> JitFile::open(const std::string& path, std::uint32_t owner) {
  // O_NONBLOCK: a FIFO must not hang us.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW));
  if (!fd.is_open() && errno == ELOOP)
    return make_error(ErrorCode::permission_denied, "open {}: refused, it is a symbolic link", path);
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "stat " + path);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::permission_denied, "open {}: refused, it is not a regular file", path);
  if (status.st_uid != owner)
    return make_error(ErrorCode::permission_denied,
                      "open {}: refused, it belongs to user {}, and the process to user {}", path,
                      status.st_uid, owner);
  return JitFile(std::move(fd), path);
}

Result<JitFile> JitFile::open_perf_map(Pid pid) {
  const auto facts = read_facts(pid);
  const std::string outside = fmt::format("/tmp/perf-{}.map", to_int(pid));
  if (!facts) return open(outside, ::geteuid());
  auto inside =
      open(fmt::format("/proc/{}/root/tmp/perf-{}.map", to_int(pid), facts->inner_pid), facts->user);
  if (inside || inside.error().code == ErrorCode::permission_denied) return inside;
  return open(outside, facts->user);
}

Result<JitFile> JitFile::open_dump(Pid pid, Address mapping_start, Address mapping_end,
                                   const FileIdentity& identity) {
  const auto facts = read_facts(pid);
  if (!facts) return open(identity.path, ::geteuid());
  auto file = open(fmt::format("/proc/{}/root{}", to_int(pid), identity.path), facts->user);
  if (file || file.error().code == ErrorCode::permission_denied) return file;
  // Deleted: the link is the kernel's own, and must be followed.
  const std::string mapped =
      fmt::format("/proc/{}/map_files/{:x}-{:x}", to_int(pid), mapping_start.value, mapping_end.value);
  UniqueFd fd(::open(mapped.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return file;
  if (status.st_uid != facts->user) return file;
  return JitFile(std::move(fd), identity.path);
}

Result<std::uint64_t> JitFile::size() const {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "stat " + path_);
  return static_cast<std::uint64_t>(status.st_size);
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

}  // namespace ddprof
