#include "runtime/stop_signals.hpp"

#include <sys/eventfd.h>

#include <cerrno>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

// A handler can reach globals only.
std::atomic<bool> stop_requested{false};
std::atomic<int> wake_descriptor{-1};

void request_stop(int) {
  int saved = errno;
  stop_requested = true;
  ::eventfd_write(wake_descriptor, 1);
  errno = saved;
}

}  // namespace

StopSignals::StopSignals(std::initializer_list<int> signals) {
  stop_requested = false;
  wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_NOCLDSTOP;
  for (int signal : signals) {
    struct sigaction old {};
    ::sigaction(signal, &action, &old);
    previous_.emplace_back(signal, old);
  }
}

StopSignals::~StopSignals() {
  for (const auto& [signal, action] : previous_) ::sigaction(signal, &action, nullptr);
  UniqueFd closing(wake_descriptor.exchange(-1));
}

const std::atomic<bool>& StopSignals::requested() const { return stop_requested; }
int StopSignals::wake_fd() const { return wake_descriptor; }

}  // namespace ddprof
