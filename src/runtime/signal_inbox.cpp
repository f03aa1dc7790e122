#include "runtime/signal_inbox.hpp"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

// A handler can reach globals only.
std::atomic<std::uint64_t> arrived{0};
std::atomic<bool> any_arrived{false};
std::atomic<std::uint64_t> request_signals{0};
std::atomic<int> wake_descriptor{-1};

void note_signal(int signal) {
  int saved = errno;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(signal);
  arrived |= bit;
  if ((request_signals & bit) == 0) any_arrived = true;
  ::eventfd_write(wake_descriptor, 1);
  errno = saved;
}

}  // namespace

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

SignalInbox::SignalInbox(std::initializer_list<int> signals, std::initializer_list<int> requests) {
  arrived = 0;
  any_arrived = false;
  request_signals = 0;
  for (int signal : requests) request_signals |= std::uint64_t{1} << static_cast<unsigned>(signal);
  wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_NOCLDSTOP | SA_RESTART;
  for (const auto& list : {signals, requests}) {
    for (int signal : list) {
      struct sigaction old {};
      ::sigaction(signal, &action, &old);
      previous_.emplace_back(signal, old);
    }
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
