#include "base/thread_pace.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "base/clock.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr Nanoseconds kTurn = 1ms;           // or a clock tick, where that is longer
constexpr Nanoseconds kLongestRest = 100ms;  // so that a change is soon noticed

std::atomic<unsigned> rest_times{0};
static_assert(std::atomic<unsigned>::is_always_lock_free);
thread_local Nanoseconds worked_before{};

int turn_signal() { return SIGRTMIN + 3; }

// A signal handler.
void rest_after_turn(int) {
  const int saved_errno = errno;
  const Nanoseconds worked = read_clock(CLOCK_THREAD_CPUTIME_ID);
  const Nanoseconds rest = std::min((worked - worked_before) * rest_times.load(), kLongestRest);
  worked_before = worked;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(rest);
  const timespec time{seconds.count(), (rest - seconds).count()};
  if (rest > 0ns) ::nanosleep(&time, nullptr);
  errno = saved_errno;
}

}  // namespace

ThreadPace::ThreadPace() {
  struct sigaction action {};
  action.sa_handler = rest_after_turn;
  action.sa_flags = SA_RESTART;
  ::sigaction(turn_signal(), &action, nullptr);
  sigset_t turns;
  ::sigemptyset(&turns);
  ::sigaddset(&turns, turn_signal());
  ::pthread_sigmask(SIG_UNBLOCK, &turns, nullptr);
  worked_before = read_clock(CLOCK_THREAD_CPUTIME_ID);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = turn_signal();
  event._sigev_un._tid = ::gettid();
  has_timer_ = ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  const timespec turn{0, kTurn.count()};
  const itimerspec every{turn, turn};
  if (has_timer_) ::timer_settime(timer_, 0, &every, nullptr);
}

ThreadPace::~ThreadPace() {
  if (has_timer_) ::timer_delete(timer_);
}

void ThreadPace::set_rest(unsigned times) { rest_times = times; }

}  // namespace ddprof
