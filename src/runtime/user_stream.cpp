#include "runtime/user_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/unique_fd.hpp"
#include "runtime/standard_streams.hpp"

namespace ddprof {

namespace {

constexpr int kPatienceMilliseconds = 1000;  // with a terminal that is stopped, a journal that is busy

void print_in_time(int fd, std::string_view text) {
  pollfd waiter{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&waiter, 1, kPatienceMilliseconds) > 0 && (waiter.revents & POLLOUT) != 0) print_to(fd, text);
}

// systemd says which socket is its journal's: "device:inode".
bool is_journal(dev_t device, ino_t inode) {
  const char* stream = std::getenv("JOURNAL_STREAM");
  return stream != nullptr && stream == fmt::format("{}:{}", device, inode);
}

}  // namespace

UserStream::UserStream(int descriptor) : descriptor_(descriptor), owner_(::getpid()) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  kind_ = status.st_mode & S_IFMT;
}

bool UserStream::is_terminal() const { return ::isatty(descriptor_) == 1; }

bool UserStream::may_be_held() const {
  return S_ISREG(kind_) || S_ISCHR(kind_) || (S_ISSOCK(kind_) && is_journal(device_, inode_));
}

bool UserStream::is_same(int fd) const {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_ &&
         (status.st_mode & S_IFMT) == kind_;
}

void UserStream::print(std::string_view text) const {
  if (kind_ == 0) return;
  if (is_same(descriptor_)) return print_in_time(descriptor_, text);
  if (!S_ISFIFO(kind_)) return;
  // The program may have put anything in its place: what it is, is seen before it is opened for good.
  const UniqueFd place(
      ::open(fmt::format("/proc/{}/fd/{}", owner_, descriptor_).c_str(), O_PATH | O_CLOEXEC));
  if (!place.is_open() || !is_same(place.get())) return;
  const UniqueFd pipe(::open(fmt::format("/proc/self/fd/{}", place.get()).c_str(),
                             O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (pipe.is_open()) print_to(pipe.get(), text);
}

}  // namespace ddprof
