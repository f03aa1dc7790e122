#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/frame.hpp"
#include "base/ids.hpp"
#include "session/counters.hpp"
#include "session/suspect_files.hpp"

namespace ddprof {

// Why a worker ended before its run did.
enum class WorkerEnd : std::uint8_t { none, scheduled, memory, crashed, hung };
inline constexpr std::size_t kWorkerEnds = 5;

// What has left the process so far, and what the next worker needs to go on from there.
struct SessionHandover {
  std::uint64_t sequence = 0;        // of the next period
  std::int64_t started = 0;          // the run; monotonic nanoseconds, 0: no worker has run yet
  std::int64_t period_started = 0;   // where the next period begins
  std::int64_t unix_offset = 0;      // of the run's times from Unix time; 0: not known yet
  std::int64_t told_by_samples = 0;  // CPU time: see CpuAccount
  std::int64_t told_by_estimates = 0;
  std::int64_t accounted = 0;
  std::int64_t sampled = 0;
  std::int64_t stolen_before = 0;  // the run
  std::int64_t observed = 0;       // time that profiles cover
  std::array<std::int64_t, kLosses> losses{};
  std::array<std::uint64_t, kStopReasons> stopped{};
  Counters counters;
  // Truths, in a type of which every byte is a value.
  std::uint8_t has_children = 0;
  std::uint8_t has_busy_root = 0;  // see IdleRoots
  std::uint8_t has_busy_child = 0;
};
static_assert(std::is_trivially_copyable_v<SessionHandover>);

// What the next worker takes over of what an earlier one wrote, which parsed foreign bytes and may have been
// made to write anything: amounts that cannot be, or times that are still to come, leave the number of the
// next period and nothing else. `latest_start` is of a period.
[[nodiscard]] SessionHandover believed(const SessionHandover& handover, Nanoseconds now,
                                       Nanoseconds latest_start);

// Memory that a supervisor shares with its workers, all zeroes at first. A worker may die at any instruction,
// so what it leaves is written beside what it replaces and then made current in one step. It may also write
// anything: readers check.
class Continuity {
 public:
  [[nodiscard]] SessionHandover handover() const {
    return handovers_[current_.load(std::memory_order_acquire) & 1U];
  }
  void commit(const SessionHandover& handover) {
    const std::uint32_t next = 1U - (current_.load(std::memory_order_relaxed) & 1U);
    handovers_[next] = handover;
    current_.store(next, std::memory_order_release);
  }

  // The worker promises to be heard of again by then.
  void promise(Nanoseconds back_by) { back_by_ = back_by.count(); }
  [[nodiscard]] Nanoseconds back_by() const { return Nanoseconds(back_by_); }

  // Set by the supervisor.
  std::array<std::atomic<std::uint32_t>, kWorkerEnds> ends{};  // how many workers ended, by cause
  std::atomic<std::int64_t> earlier_cpu{0};                    // of workers that have ended
  std::atomic<std::int64_t> charged_cpu{-1};  // of the target, when it has ended and is our child

  std::atomic<std::uint32_t> flushes_wanted{0};  // how often a period was to close before its time

  // By the worker: that it has closed a period on request, for which time, and the number behind that
  // period's. It has left when the handover has that number.
  std::atomic<std::uint32_t> flushes{0};
  std::atomic<std::uint64_t> flushed_sequence{0};

  // The workers' own.
  SuspectFiles suspects;

 private:
  std::array<SessionHandover, 2> handovers_{};
  std::atomic<std::uint32_t> current_{0};
  std::atomic<std::int64_t> back_by_{0};
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace ddprof
