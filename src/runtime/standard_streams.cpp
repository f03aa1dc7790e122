#include "runtime/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <string>

namespace ddprof {

namespace {

// Holds SIGPIPE back from this thread, and swallows one that came meanwhile.
class WithoutBrokenPipes {
 public:
  WithoutBrokenPipes() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending{};
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutBrokenPipes() {
    timespec at_once{};
    if (!was_pending_) {
      while (::sigtimedwait(&pipe_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutBrokenPipes(const WithoutBrokenPipes&) = delete;
  WithoutBrokenPipes& operator=(const WithoutBrokenPipes&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace

UniqueFd open_nothing() {
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  // A root without /dev still has itself; nothing can be read from or written to a bare path.
  return null.is_open() ? std::move(null) : UniqueFd(::open("/", O_PATH | O_CLOEXEC));
}

void fill_closed_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    UniqueFd filled = open_nothing();  // the lowest number that is free
    if (filled.get() == stream) [[maybe_unused]]
      int filler = filled.release();
  }
}

void close_descriptors(unsigned first, unsigned last) {
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
  // Before Linux 5.9, or under a filter that has never heard of it.
  constexpr unsigned kMost = 1U << 16U;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max > kMost) limit.rlim_max = kMost;
  unsigned end = std::min(last, static_cast<unsigned>(limit.rlim_max));
  for (unsigned fd = first; fd <= end; ++fd) ::close(static_cast<int>(fd));
}

void print_to_standard_error(std::string_view text) { print_to(STDERR_FILENO, text); }

void print_to(int fd, std::string_view text) {
  WithoutBrokenPipes quiet;
  while (!text.empty()) {
    ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

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
