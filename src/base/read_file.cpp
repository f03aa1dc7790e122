#include "base/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/unique_fd.hpp"

namespace ddprof {

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  std::string content;
  // A size that is known saves copying; that of a file in /proc is 0.
  struct stat status {};
  if (::fstat(fd.get(), &status) == 0 && status.st_size > 0)
    content.reserve(std::min(static_cast<std::size_t>(status.st_size), max_bytes));
  std::array<char, 16384> buffer;
  while (true) {
    ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read " + path);
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(count));
    if (content.size() > max_bytes)
      return make_error(ErrorCode::exhausted, "read {}: larger than {} bytes", path, max_bytes);
  }
}

}  // namespace ddprof
