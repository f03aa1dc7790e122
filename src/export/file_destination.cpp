#include "export/file_destination.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include "base/read_file.hpp"
#include "base/unique_fd.hpp"
#include "encode/decode.hpp"
#include "profile/merge.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;  // of a file that is added to

std::string directory_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> write_all(int fd, const std::string& path, std::string_view content) {
  while (!content.empty()) {
    ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "write " + path);
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// /dev/stdout, a FIFO
Result<void> write_special(const std::string& path, const std::string& content) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  return write_all(fd.get(), path, content);
}

// Beside `path`. Processes of two containers may share both a folder and a number.
Result<std::string> write_temporary(const std::string& path, const std::string& content) {
  std::random_device random;
  std::string temporary = fmt::format("{}.{}.{:08x}.tmp", path, ::getpid(), random());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0600));
  if (!fd.is_open()) return errno_error(errno, "open " + temporary);
  auto written = write_all(fd.get(), path, content);
  if (written && ::close(fd.release()) != 0) written = errno_error(errno, "close " + path);
  if (written) return temporary;
  ::unlink(temporary.c_str());
  return std::move(written).error();
}

bool take_name(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).is_open();
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, const std::string& content) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return write_special(path, content);
  return replace_file(path, content);
}

Result<void> replace_file(const std::string& path, const std::string& content) {
  const std::string temporary = TRY(write_temporary(path, content));
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  Error error = errno_error(errno, "rename to " + path);
  ::unlink(temporary.c_str());
  return error;
}

Result<bool> write_new_file(const std::string& path, const std::string& content) {
  const std::string temporary = TRY(write_temporary(path, content));
  int failed = 0;
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) failed = errno;
  // NFS and some others cannot do that. There the name is taken first, by an empty file.
  if (failed == EINVAL || failed == ENOSYS)
    failed = take_name(path) && ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
  if (failed == 0) return true;
  ::unlink(temporary.c_str());
  if (failed == EEXIST) return false;
  return errno_error(failed, "rename to " + path);
}

Result<void> check_writable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode))
      return make_error(ErrorCode::invalid_argument, "write {}: is a directory", path);
    if (::access(path.c_str(), W_OK) != 0) return errno_error(errno, "write " + path);
    if (!S_ISREG(status.st_mode)) return {};
  }
  std::string directory = directory_of(path);
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return {};
  Error error = errno_error(errno, "write " + path);
  return with_hint(std::move(error), "choose another place with --output FILE");
}

Result<FileDestination> FileDestination::create(std::string path, OnWritten on_written) {
  OutputFormat format = TRY(output_format(path));
  // A recording may add to its file, and has to read it for that.
  if (format == OutputFormat::otlp) {
    return with_hint(make_error(ErrorCode::invalid_argument,
                                "output {}: OTLP is written by ddprof convert, not while recording", path),
                     "record into FILE.pb.gz, then: ddprof convert FILE.pb.gz " + path);
  }
  if (auto writable = check_writable(path); !writable) return std::move(writable).error();
  return FileDestination(std::move(path), format, Claim(), std::move(on_written));
}

Result<FileDestination> FileDestination::create_new(const std::string& stem, OnWritten on_written) {
  Claim claim = TRY(Claim::first_free(stem));
  std::string path = claim.path();
  return FileDestination(std::move(path), OutputFormat::pprof_gzip, std::move(claim), std::move(on_written));
}

Result<FileDestination::Claim> FileDestination::Claim::first_free(const std::string& stem) {
  constexpr unsigned kMostTries = 10'000;
  Claim claim;
  for (unsigned number = 1; number <= kMostTries; ++number) {
    claim.path_ = number == 1 ? stem + ".pb.gz" : fmt::format("{}-{}.pb.gz", stem, number);
    if (take_name(claim.path_)) {
      claim.owner_ = ::getpid();
      return claim;
    }
    if (errno != EEXIST) break;
  }
  return with_hint(errno_error(errno, "write " + claim.path_), "choose another place with --output FILE");
}

FileDestination::Claim::~Claim() {
  struct stat status {};
  if (!path_.empty() && owner_ == ::getpid() && ::lstat(path_.c_str(), &status) == 0 &&
      S_ISREG(status.st_mode) && status.st_size == 0)
    ::unlink(path_.c_str());
}

Result<void> FileDestination::send_part(const Batch& batch) const {
  const bool is_picture = !is_readable(format_);
  const std::string parts = is_picture ? path_ + ".parts.pb.gz" : path_;
  Profile merged;
  const Profile* whole = &batch.parts.front().profile;  // a recording is of one kind
  if (batch.sequence > 0) {
    const std::string bytes = TRY(read_file(parts, kMostBytes));
    merged = merge(TRY(decode(std::as_bytes(std::span(bytes)))), *whole);
    whole = &merged;
  }
  const std::string content = TRY(encode(*whole, format_));
  TRY(write_file_atomically(path_, content));
  if (on_written_) on_written_(*whole);
  if (!is_picture) return {};
  if (!batch.is_last) return write_file_atomically(parts, TRY(encode(*whole, OutputFormat::pprof_gzip)));
  if (batch.sequence > 0) ::unlink(parts.c_str());
  return {};
}

Result<Delivery> FileDestination::send(const Batch& batch) {
  TRY(send_part(batch));
  return Delivery::arrived;
}

}  // namespace ddprof
