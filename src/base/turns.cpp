#include "base/turns.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.hpp"

namespace ddprof {

using namespace std::chrono_literals;

namespace {

constexpr Nanoseconds kTurn = 1ms;

std::mutex mutex;  // guards the next
unsigned rest_times = 0;
std::condition_variable changed;

thread_local bool works_in_turns = false;
thread_local Nanoseconds turn_began{};  // by the clock on the wall, which is cheaper to read
thread_local Nanoseconds worked_before{};

void begin_turn() {
  turn_began = monotonic_now();
  worked_before = thread_cpu_now();
}

}  // namespace

Turns::Turns() {
  works_in_turns = true;
  begin_turn();
}

Turns::~Turns() { works_in_turns = false; }

void Turns::set_rest(unsigned times) {
  {
    const std::lock_guard lock(mutex);
    rest_times = times;
  }
  changed.notify_all();
}

void rest_point() {
  if (!works_in_turns || monotonic_now() - turn_began < kTurn) return;
  const Nanoseconds worked = thread_cpu_now() - worked_before;
  if (worked < kTurn) return;
  {
    std::unique_lock lock(mutex);
    const unsigned times = rest_times;
    changed.wait_for(lock, worked * times, [times] { return rest_times != times; });
  }
  begin_turn();
}

}  // namespace ddprof
