#include "process/file_threads.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <vector>

#include "base/clock.hpp"

namespace ddprof {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kAlice = 1001, kBob = 1002;

// Jobs that hang until the test is over.
class Gate {
 public:
  ~Gate() { gate_.set_value(); }
  FileThreads::Job job() {
    return [open = open_] { open.wait(); };
  }

 private:
  std::promise<void> gate_;
  std::shared_future<void> open_ = gate_.get_future().share();
};

TEST(FileThreads, TheJobsOfAUserRunOneAfterTheOther) {
  FileThreads threads;
  auto order = std::make_shared<std::vector<int>>();  // guarded by their order
  for (int number = 0; number < 100; ++number)
    ASSERT_TRUE(threads.post(kAlice, [order, number] { order->push_back(number); }));
  threads.wait_for(1min, [&] { return threads.finished() == 100; });
  ASSERT_EQ(order->size(), 100U);
  for (int number = 0; number < 100; ++number) EXPECT_EQ((*order)[static_cast<std::size_t>(number)], number);
}

TEST(FileThreads, WhatIsWantedNowComesFirst) {
  FileThreads threads;
  std::promise<void> gate;
  auto order = std::make_shared<std::vector<int>>();
  ASSERT_TRUE(threads.post(kAlice, [open = gate.get_future().share()] { open.wait(); }));
  ASSERT_TRUE(threads.post(
      kAlice, [order] { order->push_back(2); }, FileThreads::Urgency::later));
  ASSERT_TRUE(threads.post(kAlice, [order] { order->push_back(1); }));
  gate.set_value();
  threads.wait_for(1min, [&] { return threads.finished() == 3; });
  EXPECT_EQ(*order, (std::vector<int>{1, 2}));
}

TEST(FileThreads, AJobThatHangsHoldsUpItsUserAlone) {
  FileThreads threads({.patience = 1h});
  Gate gate;
  auto done = std::make_shared<std::atomic<int>>(0);
  ASSERT_TRUE(threads.post(kAlice, gate.job()));
  ASSERT_TRUE(threads.post(kAlice, [done] { *done += 100; }));
  ASSERT_TRUE(threads.post(kBob, [done] { ++*done; }));
  ASSERT_TRUE(threads.post(std::nullopt, [done] { ++*done; }));
  threads.wait_for(1min, [&] { return threads.finished() == 2; });
  EXPECT_EQ(*done, 2);
}

TEST(FileThreads, AfterItsPatienceTheNextJobOfTheUserRuns) {
  FileThreads threads({.patience = 10ms});
  Gate gate;
  ASSERT_TRUE(threads.post(kAlice, gate.job()));
  ASSERT_TRUE(threads.post(kAlice, [] {}));
  while (threads.finished() == 0) threads.wait_for(5ms, [&] { return threads.finished() > 0; });
}

TEST(FileThreads, FewJobsOfAUserMayHang) {
  FileThreads threads({.patience = 1ms, .last_patience = 1ms, .hung_of_user = 2});
  Gate gate;
  const auto hangs = [&] {
    const Nanoseconds until = monotonic_now() + 50ms;
    while (monotonic_now() < until) threads.wait_for(1ms, [] { return false; });
  };
  ASSERT_TRUE(threads.post(kAlice, gate.job()));
  hangs();
  ASSERT_TRUE(threads.post(kAlice, gate.job()));
  hangs();
  EXPECT_FALSE(threads.post(kAlice, [] {}));
  ASSERT_TRUE(threads.post(kBob, [] {}));
  threads.wait_for(1min, [&] { return threads.finished() == 1; });
}

TEST(FileThreads, ThereAreNotMoreThanThat) {
  FileThreads threads({.patience = 1h, .threads = 2});
  Gate gate;
  for (std::uint32_t user = 0; user < 5; ++user) ASSERT_TRUE(threads.post(user, gate.job()));
  ASSERT_TRUE(threads.post(kAlice, [] {}));
  threads.wait_for(20ms, [&] { return threads.finished() > 0; });
  EXPECT_EQ(threads.finished(), 0U);
}

Nanoseconds waiting(FileThreads& threads, FileThreads::User user, bool is_large) {
  const Nanoseconds began = monotonic_now();
  threads.wait(user, is_large, [] { return false; });
  return monotonic_now() - began;
}

TEST(FileThreads, WaitsForAPartOfEachSecond) {
  FileThreads threads({.most_waiting = 400ms});
  EXPECT_GE(waiting(threads, kAlice, false), 200ms);
  EXPECT_LT(waiting(threads, kAlice, false), 100ms);
  EXPECT_GE(waiting(threads, 0, false), 100ms);
  EXPECT_LT(waiting(threads, kBob, false), 100ms);
}

TEST(FileThreads, LargeFilesLeaveTimeForSmallOnes) {
  FileThreads threads({.most_waiting = 400ms});
  EXPECT_GE(waiting(threads, 0, true), 200ms);
  EXPECT_LT(waiting(threads, 0, true), 100ms);
  EXPECT_GE(waiting(threads, 0, false), 100ms);
}

}  // namespace
}  // namespace ddprof
