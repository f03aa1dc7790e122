#include "inject/session.hpp"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "inject/attachment.hpp"
#include "inject/command_line.hpp"
#include "inject/real_functions.hpp"
#include "inject/sampler.hpp"
#include "inject/system_calls.hpp"

extern "C" __attribute__((weak)) unsigned long getauxval(unsigned long) noexcept;

namespace inject {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kStartPatience = 30 * kSecond;
constexpr uint64_t kEndPatience = 60 * kSecond;

// --- The last error ---

constexpr uint32_t kTexts = 8;
constexpr size_t kTextBytes = 1024;
char texts[kTexts][kTextBytes];
uint32_t texts_used;
const char* current_text = "";

void forget_last_error() {
  const char* const nothing = "";
  __atomic_store_n(&current_text, nothing, __ATOMIC_RELEASE);
}

void close_descriptor(int fd) { system_call(SYS_close, fd); }

}  // namespace

void set_last_error(const char* first, const char* second, const char* third) {
  char* const text = texts[__atomic_fetch_add(&texts_used, 1, __ATOMIC_RELAXED) % kTexts];
  size_t length = 0;
  const char* const parts[] = {first, second, third};
  for (const char* part : parts)
    for (; part != nullptr && *part != '\0' && length + 1 < kTextBytes; ++part) text[length++] = *part;
  while (length > 0 && text[length - 1] == '\n') --length;
  text[length] = '\0';
  __atomic_store_n(&current_text, text, __ATOMIC_RELEASE);
}

const char* last_error() { return __atomic_load_n(&current_text, __ATOMIC_ACQUIRE); }

// --- The socket ---

char Session::packet_[DDPROF_CONTROL_BYTES + 1];

bool Session::has_socket() const {
  struct stat status {};
  return socket_ >= 0 && !has_failed(system_call(SYS_fstat, socket_, to_argument(&status))) &&
         status.st_dev == device_ && status.st_ino == inode_;
}

// With a number that programs do not expect to be next.
void Session::adopt_socket(int fd) {
  constexpr int kFirst = 200;
  const long moved = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kFirst);
  if (!has_failed(moved)) close_descriptor(fd);
  socket_ = has_failed(moved) ? fd : static_cast<int>(moved);
  struct stat status {};
  system_call(SYS_fstat, socket_, to_argument(&status));
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

void Session::close_socket() {
  if (has_socket()) close_descriptor(socket_);
  socket_ = -1;
}

bool Session::send(ddprof_control_command command) const {
  const char byte = static_cast<char>(command);
  return system_call(SYS_sendto, socket_, to_argument(&byte), 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

Session::Heard Session::hear(uint64_t deadline) {
  if (!has_socket()) return Heard::end;
  while (true) {
    const uint64_t now = monotonic_ns();
    const uint64_t left = now < deadline ? deadline - now : 0;
    const timespec wait{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
    pollfd waiter{.fd = socket_, .events = POLLIN, .revents = 0};
    const long ready = system_call(SYS_ppoll, to_argument(&waiter), 1, to_argument(&wait), 0, 0);
    if (ready == -4 && now < deadline) continue;  // EINTR
    if (ready <= 0) return Heard::nothing;
    const long size =
        system_call(SYS_recvfrom, socket_, to_argument(packet_), sizeof packet_ - 1, MSG_DONTWAIT, 0, 0);
    if (size == -4 || size == -11) continue;  // EINTR, EAGAIN
    if (size <= 0) return Heard::end;
    packet_bytes_ = static_cast<size_t>(size);
    packet_[packet_bytes_] = '\0';
    if (packet_[0] == DDPROF_CONTROL_MARK) return Heard::answer;
    constexpr size_t kOwnName = sizeof "ddprof: " - 1;
    const bool is_line = packet_bytes_ > kOwnName && packet_[0] == 'd' && packet_[kOwnName - 2] == ':';
    for (size_t i = 0; i < packet_bytes_; ++i)  // its hint is on a line of its own
      if (packet_[i] == '\n' && i + 1 < packet_bytes_) packet_[i] = ';';
    set_last_error(is_line ? packet_ + kOwnName : packet_);
    return Heard::message;
  }
}

const char* Session::text(size_t number) const {
  for (size_t i = 2; i < packet_bytes_; ++i)
    if (packet_[i] == '\0' && number-- == 0) return packet_ + i + 1;
  return nullptr;
}

bool Session::await(ddprof_control_answer answer, uint64_t deadline) {
  while (true) {
    const Heard heard = hear(deadline);
    if (heard == Heard::message) continue;
    if (heard != Heard::answer) return false;
    if (packet_[1] == answer) return true;
  }
}

// --- Beginning and end ---

void Session::look_around() {
  const int own = static_cast<int>(system_call(SYS_getpid));
  if (own == pid_) return;
  close_socket();
  attachment.look_around();
  process_ = {};
  has_memory_ = has_ended_ = false;
  pid_ = own;
}

bool Session::launch(const ddprof_options& options) {
  CommandLine command;
  int ends[2] = {-1, -1};
  bool is_launched = command.make(options, pid_, has_hooks());
  if (is_launched &&
      has_failed(system_call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, to_argument(ends)))) {
    set_last_error("no socket can be made");
    is_launched = false;
  }
  if (!is_launched) {
    command.release();
    return false;
  }
  is_launched = process_.launch(command.path, command.arguments, command.environment, ends[1]) == 0;
  close_descriptor(ends[1]);  // the profiler has its own
  bool has_spoken = !is_launched;
  if (is_launched) {
    adopt_socket(ends[0]);
    is_launched = await_start(monotonic_ns() + kStartPatience, has_spoken);
  } else {
    set_last_error("no process can be made for ddprof");
    close_descriptor(ends[0]);
  }
  // Else it may still execute: what it needs for that is left to it.
  if (has_spoken) process_.release_memory();
  if (has_spoken) command.release();
  if (!is_launched) end();
  return is_launched;
}

// Its environment, which says what to execute, is that of a user with fewer rights.
static bool has_borrowed_rights() { return &getauxval != nullptr && getauxval(AT_SECURE) != 0; }

bool Session::start(const ddprof_options& options) {
  if (status() != 0 && !has_ended_) {
    set_last_error("the profiler has been started already");
    return false;
  }
  if (attachment.is_taken()) {
    set_last_error("the program runs under ddprof already");
    return false;
  }
  if (has_borrowed_rights()) {
    set_last_error(
        "a program with more rights than its user (set-user-ID, file capabilities) does not start a "
        "profiler");
    return false;
  }
  has_ended_ = false;
  forget_last_error();
  patience_ = kEndPatience + options.exit_timeout * kSecond;
  return launch(options);
}

bool Session::await_start(uint64_t deadline, bool& has_spoken) {
  Heard heard = Heard::message;
  while (heard == Heard::message) heard = hear(deadline);
  has_spoken = heard != Heard::nothing;
  if (heard == Heard::nothing) set_last_error("the profiler did not attach in time");
  if (heard == Heard::end && *last_error() == '\0')
    set_last_error("the profiler has ended before it had attached");
  if (heard != Heard::answer) return false;
  const char* const first = text(0);
  if (packet_[1] != DDPROF_CONTROL_READY || first == nullptr) {
    set_last_error(first != nullptr ? first : "the profiler has ended before it had attached");
    return false;
  }
  if (const char* notice = text(1)) set_last_error(notice);
  has_memory_ = *first != '\0' && attachment.begin(first);
  if (*first != '\0' && !has_memory_)
    set_last_error("allocations are not sampled: the memory of the profiler cannot be mapped");
  return true;
}

void Session::end() {
  close_socket();
  attachment.end();
  process_.reap();
  has_memory_ = false;
}

bool Session::stop() {
  if (socket_ < 0) {
    if (!has_ended_) set_last_error("no profiler was started");
    has_ended_ = false;
    return false;
  }
  forget_last_error();
  const bool is_asked = has_socket() && send(DDPROF_CONTROL_STOP);
  bool has_stopped = is_asked && await(DDPROF_CONTROL_ENDED, monotonic_ns() + patience_);
  if (!has_stopped) set_last_error("the profiler did not end in order");
  const char* const problem = has_stopped ? text(0) : nullptr;
  if (problem != nullptr && *last_error() == '\0') set_last_error(problem);
  has_stopped = has_stopped && problem == nullptr;
  // Its processes end right after that, and with them the connection.
  const uint64_t deadline = monotonic_ns() + 2 * kSecond;
  for (Heard heard = Heard::answer; heard == Heard::answer || heard == Heard::message;)
    heard = hear(deadline);
  end();
  return has_stopped;
}

bool Session::flush() {
  if ((status() & DDPROF_CPU) == 0) {
    set_last_error("no profiler runs");
    return false;
  }
  forget_last_error();
  const bool is_flushed =
      send(DDPROF_CONTROL_FLUSH) && await(DDPROF_CONTROL_FLUSHED, monotonic_ns() + kEndPatience);
  const char* const problem = is_flushed ? text(0) : "the profiler did not answer";
  if (problem != nullptr) set_last_error(problem);
  return problem == nullptr;
}

int Session::status() {
  if (socket_ >= 0) {
    Heard heard = Heard::message;
    while (heard == Heard::message || heard == Heard::answer) heard = hear(0);
    if (heard == Heard::end) {
      if (*last_error() == '\0') set_last_error("the profiler has ended by itself");
      end();
      has_ended_ = true;
    }
  }
  if (has_ended_) return DDPROF_ENDED;
  return socket_ < 0 ? 0 : has_memory_ ? DDPROF_CPU | DDPROF_MEMORY : DDPROF_CPU;
}

}  // namespace inject
