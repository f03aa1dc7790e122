#include "base/turns.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "base/clock.hpp"

namespace ddprof {
namespace {

using namespace std::chrono_literals;

// How long a thread takes on the wall for so much work, in pieces of a tenth of a millisecond.
Nanoseconds wall_time_of(Nanoseconds work, bool has_turns) {
  Nanoseconds taken{};
  std::thread([&] {
    std::optional<Turns> turns;
    if (has_turns) turns.emplace();
    const Nanoseconds begin = monotonic_now();
    for (Nanoseconds done{}; done < work; done += 100us) {
      for (const Nanoseconds piece = thread_cpu_now(); thread_cpu_now() - piece < 100us;) {
      }
      rest_point();
    }
    taken = monotonic_now() - begin;
  }).join();
  return taken;
}

TEST(Turns, RestInProportionToTheWork) {
  Turns::set_rest(9);
  EXPECT_GT(wall_time_of(20ms, true), 160ms);  // 200, but for the last turn
  Turns::set_rest(0);
}

TEST(Turns, OfOtherThreadsDoNotRest) {
  Turns::set_rest(10'000);
  EXPECT_LT(wall_time_of(20ms, false), 100s);  // with rests: 200 s
  Turns::set_rest(0);
}

TEST(Turns, ARestEndsWhenThereIsToBeNone) {
  Turns::set_rest(1'000'000);
  std::thread change([] {
    std::this_thread::sleep_for(50ms);
    Turns::set_rest(0);
  });
  EXPECT_LT(wall_time_of(20ms, true), 100s);  // the first rest alone would be 1,000 s
  change.join();
}

}  // namespace
}  // namespace ddprof
