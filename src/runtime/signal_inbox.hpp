#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace ddprof {

// Of a profiler that begins inside of another program: what that one does with signals is not for us.
void reset_signals();

// Turns signals into facts to read, and a descriptor that ends a wait in poll(). Restores the
// dispositions when it goes. One at a time: handlers are global by nature.
class SignalInbox {
 public:
  // Those of `requests` are for who asks: they do not show in any().
  explicit SignalInbox(std::initializer_list<int> signals, std::initializer_list<int> requests = {});
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;
  SignalInbox& operator=(const SignalInbox&) = delete;

  // Which signals have come since the last call, a bit each; the descriptor is silent until the next one.
  std::uint64_t take();
  static bool has(std::uint64_t signals, int signal) {
    return (signals >> static_cast<unsigned>(signal) & 1U) != 0;
  }

  // True for good once any signal has come that is not a request.
  [[nodiscard]] const std::atomic<bool>& any() const;
  [[nodiscard]] int wake_fd() const;

 private:
  std::vector<std::pair<int, struct sigaction>> previous_;
};

// No signal is delivered to this thread while it lives; for the moments around fork().
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace ddprof
