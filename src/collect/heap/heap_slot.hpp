#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "wire/heap.h"

namespace ddprof {

// One record of a ring, checked. `payload` is valid until the next one is read.
struct HeapRecord {
  ddprof_heap_record header{};
  std::span<const std::uint64_t> payload{};
};

// What an allocation of `size` bytes stands for that was sampled with a mean of `interval` bytes between
// samples: it had a chance of p = 1 - e^(-size / interval), so there were 1/p of its kind. docs/memory.md.
struct HeapWeight {
  std::int64_t bytes = 0;
  std::int64_t objects = 0;

  // 1/p is rounded up or down by chance, so that sums are right: `number` is that chance, anything that is
  // always the same for the one and different for the next.
  static HeapWeight of(std::uint64_t size, std::uint64_t interval, std::uint64_t number);
};

// The slot of one process, as the profiler reads it. The process may write anything there, at any moment:
// words are copied before they are checked, and nothing that it says is used as an address.
class HeapSlot {
 public:
  // How long a record may stay incomplete; then it never will be.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(1);

  explicit HeapSlot(MappedRegion memory) : memory_(std::move(memory)), tail_(load(slot().tail)) {}

  // The next record; none: there is none yet. `now` decides about incomplete ones, of which a process that
  // has ended completes none; what is passed over is counted.
  std::optional<HeapRecord> read(Nanoseconds now, bool has_ended = false);
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }

  // What the library has counted since the last call, of whichever worker.
  ddprof_heap_counters take_counters();
  [[nodiscard]] std::uint64_t interval() const;

  // Every block that is alive: address and what is known of it.
  template <typename Take>
  void for_each_block(Take take) const {
    for (std::size_t place = 0; place < DDPROF_HEAP_LIVE_KEYS; ++place) {
      const std::uint64_t key = load(slot().keys[place]);
      if (key == 0 || (key & 1U) != 0) continue;
      // Twice: it may be freed meanwhile, and another be allocated at its address.
      const ddprof_heap_block block = read_block(place);
      const bool is_same = load(slot().keys[place]) == key && are_equal(block, read_block(place));
      if (is_same && block.interval != 0) take(key, block);
    }
  }

  // Another version of the modules of the process; at most DDPROF_HEAP_MODULES of them, in order.
  void publish(std::span<const ddprof_heap_module> modules);

 private:
  static constexpr std::uint64_t kWords = DDPROF_HEAP_RING_BYTES / 8;
  static constexpr std::uint64_t kHeaderWords = sizeof(ddprof_heap_record) / 8;

  template <typename Word>
  static Word load(const Word& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  }
  [[nodiscard]] ddprof_heap_slot& slot() const {
    return *reinterpret_cast<ddprof_heap_slot*>(memory_.data());
  }
  [[nodiscard]] ddprof_heap_block read_block(std::size_t place) const;
  static bool are_equal(const ddprof_heap_block& left, const ddprof_heap_block& right) {
    return left.size == right.size && left.interval == right.interval && left.stack == right.stack &&
           left.time == right.time;
  }
  [[nodiscard]] std::uint64_t word(std::uint64_t at) const { return load(slot().ring[at & (kWords - 1)]); }
  void pass_over(std::uint64_t words);

  MappedRegion memory_;
  std::uint64_t tail_;  // ours: the one in the slot only tells the library
  std::optional<Nanoseconds> incomplete_since_;
  std::uint64_t malformed_ = 0;
  std::vector<std::uint64_t> payload_;
};

}  // namespace ddprof
