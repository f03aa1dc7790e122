#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/thread_pace.hpp"
#include "export/destination.hpp"
#include "session/closed_period.hpp"
#include "session/namer.hpp"

namespace ddprof {

// Names, encodes and sends closed periods on a thread of its own, so that sampling never waits for a file
// system or a peer. Between the two is a queue of five that drops the oldest and counts it.
class Finisher {
 public:
  static constexpr std::size_t kQueueLength = 5;
  // For what is still to be sent at the end, counted from the first that is: naming has its own limits.
  static constexpr std::chrono::milliseconds kLastPatience{5000};

  Finisher(Destination& destination, const NamerOptions& naming, Continuity& continuity,
           std::chrono::milliseconds last_patience = kLastPatience)
      : destination_(destination), naming_(naming), continuity_(continuity), last_patience_(last_patience) {
    ThreadPace::set_rest(naming.rest);
  }
  ~Finisher() { finish(); }

  // Hands a period to the finishing thread, which is started by the first one.
  void post_period(ClosedPeriod period);
  // Waits until everything that was posted has been sent or has failed, which a peer can only put off for so
  // long. Nothing may be posted afterwards.
  void finish();
  // Memory is tight: what the naming of the next period can do without is given up before.
  void shrink() { must_shrink_ = true; }

  struct Outcome {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;
    std::uint64_t failed = 0;
    std::size_t queued = 0;
    DeliveryCounters delivery;
    std::optional<Error> first_error;
    std::vector<ModuleNaming> modules;  // of the last period
    Nanoseconds naming_cpu{};           // of all periods that are counted here
  };
  [[nodiscard]] Outcome outcome() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void send(const ClosedPeriod& period);
  Result<Delivery> deliver(const Batch& batch);
  void begin_last_patience();

  Destination& destination_;
  NamerOptions naming_;
  Continuity& continuity_;
  std::chrono::milliseconds last_patience_;
  std::optional<Namer> namer_;  // the finishing thread's alone
  std::atomic<bool> must_shrink_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ClosedPeriod> queue_;
  bool is_finishing_ = false;
  bool is_delivering_ = false;
  bool is_done_ = false;
  std::optional<Clock::time_point> give_up_at_;
  Outcome outcome_;
  std::thread thread_;
};

}  // namespace ddprof
