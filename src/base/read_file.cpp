#include "base/read_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

enum class WhenEmpty : std::uint8_t { fail, wait };

// A descriptor that another process shares with us may be non-blocking although we never made it so.
bool await_input(int fd) {
  pollfd input{fd, POLLIN, 0};
  return ::poll(&input, 1, -1) >= 0 || errno == EINTR;
}

// Until take(piece) returns false.
template <typename Take>
Result<void> for_each_piece(int fd, const std::string& name, WhenEmpty when_empty, const Take& take) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN && when_empty == WhenEmpty::wait && await_input(fd)) continue;
    if (count < 0) return errno_error(errno, "read " + name);
    if (count == 0 || !take(std::string_view(buffer.data(), static_cast<std::size_t>(count)))) return {};
  }
}

Result<std::string> read_all(int fd, const std::string& name, std::size_t max_bytes, WhenEmpty when_empty) {
  std::string content;
  // A size that is known saves copying; that of a file in /proc is 0.
  struct stat status {};
  if (::fstat(fd, &status) == 0 && status.st_size > 0)
    content.reserve(std::min(static_cast<std::size_t>(status.st_size), max_bytes));
  TRY(for_each_piece(fd, name, when_empty,
                     [&](std::string_view piece) { return content.append(piece).size() <= max_bytes; }));
  if (content.size() > max_bytes)
    return make_error(ErrorCode::exhausted, "read {}: larger than {} bytes", name, max_bytes);
  return content;
}

Result<UniqueFd> open_to_read(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | flags));
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  return fd;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const UniqueFd fd = TRY(open_to_read(path, O_NONBLOCK));
  return read_all(fd.get(), path, max_bytes, WhenEmpty::fail);
}

Result<void> read_pieces(const std::string& path, const std::function<void(std::string_view)>& take) {
  const UniqueFd fd = TRY(open_to_read(path, O_NONBLOCK));
  return for_each_piece(fd.get(), path, WhenEmpty::fail, [&](std::string_view piece) {
    take(piece);
    return true;
  });
}

Result<std::string> read_input(const std::string& path, std::size_t max_bytes) {
  // The descriptor itself: opening /dev/stdin again fails for a socket, and for a pipe of another user.
  if (path == "-" || path == "/dev/stdin")
    return read_all(STDIN_FILENO, "standard input", max_bytes, WhenEmpty::wait);
  const UniqueFd fd = TRY(open_to_read(path, 0));
  return read_all(fd.get(), path, max_bytes, WhenEmpty::wait);
}

}  // namespace ddprof
