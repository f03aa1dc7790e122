#pragma once

#include <ctime>

#include "base/ids.hpp"

namespace ddprof {

inline Nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

// The clock of all perf records here (use_clockid).
inline Nanoseconds monotonic_now() { return read_clock(CLOCK_MONOTONIC); }
inline Nanoseconds thread_cpu_now() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
inline Nanoseconds unix_now() { return read_clock(CLOCK_REALTIME); }

// What time it is, for what decides by it: periods, budgets, pacing. Tests have one of their own and do not
// wait.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Nanoseconds now() const { return monotonic_now(); }
  [[nodiscard]] virtual Nanoseconds unix_time() const { return unix_now(); }
  // CPU time of this process.
  [[nodiscard]] virtual Nanoseconds own_cpu() const { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

  static const Clock& system() {
    static const Clock kSystem;
    return kSystem;
  }
};

}  // namespace ddprof
