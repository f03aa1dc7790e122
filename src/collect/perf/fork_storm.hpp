#pragma once

#include <cstdint>

namespace ddprof {

// Notices a program whose tasks mostly end before their first sample: they are never seen by per-task events
// (each new task starts a fresh period), and every fork pays for the inherited events.
class ForkStorm {
 public:
  void task_ended(std::uint64_t time_ns, bool was_sampled);
  // Closes windows that have passed; true once a window was a storm.
  bool is_raging(std::uint64_t now_ns);
  [[nodiscard]] std::uint64_t unsampled_ends() const { return all_unsampled_; }

 private:
  void close_window();

  std::uint64_t window_start_ = 0;
  std::uint64_t ended_ = 0, unsampled_ = 0;  // in this window
  std::uint64_t all_unsampled_ = 0;
  bool is_raging_ = false;
};

}  // namespace ddprof
