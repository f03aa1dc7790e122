#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"

namespace ddprof {

// The files that were being read when a worker crashed, hung or ran out of memory, in memory that the workers
// of a run share (see Continuity): the next one leaves them alone. For ten minutes at first, because a worker
// that is killed from outside reads something too; each further time for four times as long. All zeroes at
// first. Nothing in here is an index or a pointer: whatever a worker leaves, the next one can read it.
class SuspectFiles {
 public:
  static constexpr std::size_t kMaxSuspects = 64;
  static constexpr Nanoseconds kFirstPause = std::chrono::minutes(10);
  static constexpr unsigned kMostDoublings = 8;  // ten minutes become a day and a half

  // A thread says which file it reads, by a number that is not 0, and when it has done so.
  void begin(std::uint64_t file) { replace(0, file); }
  void end(std::uint64_t file) { replace(file, 0); }

  // What is being read, or was when the last worker ended, has done it.
  void blame_unfinished(Nanoseconds now) {
    for (auto& file : reading_) {
      if (const std::uint64_t number = file.exchange(0)) blame(number, now);
    }
  }
  // The worker ends in order: nothing is to blame.
  void forget_unfinished() {
    for (auto& file : reading_) file.store(0, std::memory_order_release);
  }
  void blame(std::uint64_t file, Nanoseconds now) {
    Suspect& suspect = entry_for(file);
    if (suspect.file.exchange(file) != file) suspect.times = 0;
    const unsigned doublings = std::min(2 * suspect.times.fetch_add(1), kMostDoublings);
    suspect.until = (now + kFirstPause * (std::int64_t{1} << doublings)).count();
  }

  [[nodiscard]] bool is_left_alone(std::uint64_t file, Nanoseconds now) const {
    for (const Suspect& suspect : suspects_) {
      if (suspect.file.load(std::memory_order_acquire) == file) return now.count() < suspect.until;
    }
    return false;
  }

 private:
  struct Suspect {
    std::atomic<std::uint64_t> file{0};
    std::atomic<std::int64_t> until{0};  // monotonic
    std::atomic<unsigned> times{0};
  };

  // In one place where it is; where it is not nothing happens: more threads than that do not read at once.
  void replace(std::uint64_t before, std::uint64_t after) {
    for (auto& file : reading_) {
      std::uint64_t expected = before;
      if (file.compare_exchange_strong(expected, after)) return;
    }
  }
  // Its own, or the one whose time is over first.
  Suspect& entry_for(std::uint64_t file) {
    Suspect* oldest = suspects_.data();
    for (Suspect& suspect : suspects_) {
      if (suspect.file == file) return suspect;
      if (suspect.until < oldest->until) oldest = &suspect;
    }
    return *oldest;
  }

  std::array<std::atomic<std::uint64_t>, 32> reading_{};
  std::array<Suspect, kMaxSuspects> suspects_{};
};

}  // namespace ddprof
