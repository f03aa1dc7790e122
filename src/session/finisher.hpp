#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "session/closed_period.hpp"

namespace ddprof {

// The finishing thread: closed periods are named, encoded and sent there, so that sampling never waits for a
// file system or a peer. Between the two is a queue of five that drops the oldest and counts it.
class Finisher {
 public:
  static constexpr std::size_t kQueueLength = 5;
  // For what is still to be sent at the end, counted from the first that is: naming has its own limits.
  static constexpr std::chrono::milliseconds kLastPatience{5000};

  struct Work {
    std::function<void(const ClosedPeriod&)> finish;  // on the finishing thread
    std::function<void()> give_up;  // called on another one: what waits for a peer fails, now and from now on
  };
  explicit Finisher(Work work, std::chrono::milliseconds last_patience = kLastPatience)
      : work_(std::move(work)), last_patience_(last_patience) {}
  ~Finisher() { finish(); }
  Finisher(const Finisher&) = delete;
  Finisher& operator=(const Finisher&) = delete;

  // Hands a period to the finishing thread, which is started by the first one.
  void post_period(ClosedPeriod period);
  // Waits until everything that was posted is finished, which a peer can only put off for so long. Nothing
  // may be posted afterwards.
  void finish();

  // By the work: what follows until the next call waits for a peer.
  void begin_sending();
  void end_sending();

  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] std::size_t queued() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void run();
  void begin_last_patience();

  Work work_;
  std::chrono::milliseconds last_patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ClosedPeriod> queue_;
  std::uint64_t dropped_ = 0;
  bool is_finishing_ = false;
  bool is_sending_ = false;
  bool is_done_ = false;
  std::optional<Deadline> give_up_at_;
  std::thread thread_;
};

}  // namespace ddprof
