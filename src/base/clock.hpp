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

}  // namespace ddprof
