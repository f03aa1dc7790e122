#pragma once

#include <signal.h>

#include <atomic>
#include <initializer_list>
#include <utility>
#include <vector>

namespace ddprof {

// Turns signals into a request to stop, and a descriptor that wakes whoever waits in poll(). Restores the
// dispositions when it goes. One at a time: handlers are global by nature.
class StopSignals {
 public:
  explicit StopSignals(std::initializer_list<int> signals);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] const std::atomic<bool>& requested() const;
  [[nodiscard]] int wake_fd() const;

 private:
  std::vector<std::pair<int, struct sigaction>> previous_;
};

}  // namespace ddprof
