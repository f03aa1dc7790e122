#include "runtime/control.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/signal_inbox.hpp"
#include "runtime/standard_streams.hpp"

namespace ddprof {

void Control::leave_program() {
  ::setsid();
  reset_signals();
  close_descriptors(STDERR_FILENO + 1);
}

void Control::send(std::string packet) const {
  constexpr int kPatienceMilliseconds = 1000;  // with a program that does not read
  if (packet.size() > DDPROF_CONTROL_BYTES) packet.resize(DDPROF_CONTROL_BYTES);
  pollfd waiter{.fd = answers_, .events = POLLOUT, .revents = 0};
  ::poll(&waiter, 1, kPatienceMilliseconds);
  while (::send(answers_, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR) {
  }
}

void Control::say_ready(std::string_view arena, const std::vector<std::string>& notices) const {
  std::string packet = {DDPROF_CONTROL_MARK, DDPROF_CONTROL_READY};
  packet.append(1, '\0').append(arena);
  for (const std::string& notice : notices) packet.append(1, '\0').append(notice);
  send(std::move(packet));
}

void Control::say(ddprof_control_answer answer, std::string_view text) const {
  std::string packet = {DDPROF_CONTROL_MARK, static_cast<char>(answer)};
  if (!text.empty()) packet.append(1, '\0').append(text);
  send(std::move(packet));
}

std::optional<ddprof_control_command> Control::take() const {
  while (true) {
    char command = 0;
    const ssize_t size = ::recv(commands_, &command, sizeof command, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return std::nullopt;
    if (size == 1 && command == DDPROF_CONTROL_FLUSH) return DDPROF_CONTROL_FLUSH;
    if (size <= 0 || command == DDPROF_CONTROL_STOP) return DDPROF_CONTROL_STOP;
  }
}

}  // namespace ddprof
