#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// What tells which sample a context was read for: both were made in the same interrupt.
struct InterruptKey {
  Pid pid{};
  Tid tid{};
  std::uint32_t cpu = 0;
  std::uint64_t address = 0;  // of the interrupted instruction

  friend bool operator==(const InterruptKey&, const InterruptKey&) = default;
};

// Contexts that wait for their samples. Both are stamped in one interrupt, a few microseconds apart: the
// context first, or on newer kernels (seen on 6.18) the sample. So a sample has the nearest context of its
// thread, CPU and instruction, and none when that is further away than any two samples of a thread would be.
class PendingContexts {
 public:
  // On a virtual machine that loses its CPU in between the two may be further apart; then there is no
  // context.
  static constexpr Nanoseconds kGreatestDistance = std::chrono::microseconds(200);
  static constexpr std::size_t kMost = 100'000;

  // `between_samples`: of one thread on one CPU, at least.
  explicit PendingContexts(Nanoseconds between_samples)
      : distance_(std::min(kGreatestDistance, between_samples / 4)) {}

  void add(const InterruptKey& key, Nanoseconds time, std::span<const std::byte> bytes);
  // The context of the sample with this key and time, once; valid until forget_before(). Empty: there is
  // none.
  std::span<const std::byte> take(const InterruptKey& key, Nanoseconds time);
  // All samples of before that time have been seen.
  void forget_before(Nanoseconds time);

  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  struct Pending {
    InterruptKey key;
    Nanoseconds time{};
    std::vector<std::byte> bytes;
    bool is_taken = false;
  };

  Nanoseconds distance_;
  absl::flat_hash_map<std::int32_t, std::vector<Pending>> of_thread_;
  std::size_t count_ = 0;
};

}  // namespace ddprof
