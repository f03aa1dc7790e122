#include "runtime/signal_inbox.hpp"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

// A handler can reach globals only.
std::atomic<std::uint64_t> arrived{0};
std::atomic<bool> any_arrived{false};
std::atomic<int> wake_descriptor{-1};

void note_signal(int signal) {
  int saved = errno;
  arrived |= std::uint64_t{1} << static_cast<unsigned>(signal);
  any_arrived = true;
  ::eventfd_write(wake_descriptor, 1);
  errno = saved;
}

}  // namespace

SignalInbox::SignalInbox(std::initializer_list<int> signals) {
  arrived = 0;
  any_arrived = false;
  wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_NOCLDSTOP | SA_RESTART;
  for (int signal : signals) {
    struct sigaction old {};
    ::sigaction(signal, &action, &old);
    previous_.emplace_back(signal, old);
  }
}

SignalInbox::~SignalInbox() {
  for (const auto& [signal, action] : previous_) ::sigaction(signal, &action, nullptr);
  UniqueFd closing(wake_descriptor.exchange(-1));
}

std::uint64_t SignalInbox::take() {
  eventfd_t ignored = 0;
  ::eventfd_read(wake_descriptor, &ignored);
  return arrived.exchange(0);
}

const std::atomic<bool>& SignalInbox::any() const { return any_arrived; }
int SignalInbox::wake_fd() const { return wake_descriptor; }

BlockedSignals::BlockedSignals() {
  sigset_t all{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace ddprof
