#include "base/thread_pace.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.hpp"

namespace ddprof {
namespace {

using namespace std::chrono_literals;

// The share of a core that a thread gets which never waits by itself.
double share_of_busy_thread(Nanoseconds work) {
  double share = 0;
  std::thread([&] {
    const ThreadPace pace;
    const Nanoseconds begin = monotonic_now();
    const Nanoseconds cpu_begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    while (read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_begin < work) {
    }
    const Nanoseconds cpu = read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
    share = static_cast<double>(cpu.count()) / static_cast<double>((monotonic_now() - begin).count());
  }).join();
  return share;
}

TEST(ThreadPace, RestsInProportionToItsWork) {
  ThreadPace::set_rest(9);
  // 0.1, and the last turn has had no rest yet. On a machine that is busy the timer may come late: not
  // always.
  double share = 1;
  for (int i = 0; i < 20 && share >= 0.25; ++i) share = share_of_busy_thread(60ms);
  EXPECT_LT(share, 0.25);
  ThreadPace::set_rest(0);
}

TEST(ThreadPace, CanBeToldNotToRest) {
  ThreadPace::set_rest(1000);
  ThreadPace::set_rest(0);
  const Nanoseconds begin = monotonic_now();
  share_of_busy_thread(20ms);
  EXPECT_LT(monotonic_now() - begin, 10s);  // with its rests it would be 20
}

}  // namespace
}  // namespace ddprof
