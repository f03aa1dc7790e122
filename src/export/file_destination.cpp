#include "export/file_destination.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

}  // namespace

Result<void> write_file_atomically(const std::string& path, const std::string& content) {
  struct stat status {};
  bool is_special = ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);  // /dev/stdout, a FIFO
  std::string temporary = is_special ? path : fmt::format("{}.{}.tmp", path, ::getpid());
  int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | (is_special ? 0 : O_CREAT | O_EXCL);
  if (!is_special) ::unlink(temporary.c_str());
  UniqueFd fd(::open(temporary.c_str(), flags, 0600));
  if (!fd.is_open()) return errno_error(errno, "open " + temporary);
  auto written = write_all(fd.get(), path, content);
  if (is_special) return written;
  if (written && ::close(fd.release()) != 0) written = errno_error(errno, "close " + path);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0)
    written = errno_error(errno, "rename to " + path);
  if (!written) ::unlink(temporary.c_str());
  return written;
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

Result<FileDestination> FileDestination::create(std::string path) {
  OutputFormat format = TRY(output_format(path));
  // A recording may add to its file, and has to read it for that.
  if (!is_readable(format)) {
    return with_hint(make_error(ErrorCode::invalid_argument,
                                "output {}: OTLP is written by ddprof convert, not while recording", path),
                     "record into FILE.pb.gz, then: ddprof convert FILE.pb.gz " + path);
  }
  if (auto writable = check_writable(path); !writable) return std::move(writable).error();
  return FileDestination(std::move(path), format);
}

Result<std::string> FileDestination::added_to_file(const Profile& profile) const {
  const std::string content = TRY(read_file(path_, kMostBytes));
  const Profile earlier = TRY(decode(std::as_bytes(std::span(content))));
  return encode(merge(earlier, profile), format_);
}

Result<Delivery> FileDestination::send(const Batch& batch) {
  const Profile& profile = batch.parts.front().profile;  // a recording is of one kind
  const bool is_first = batch.sequence == 0;
  const std::string content = is_first ? TRY(encode(profile, format_)) : TRY(added_to_file(profile));
  TRY(write_file_atomically(path_, content));
  return Delivery::arrived;
}

}  // namespace ddprof
