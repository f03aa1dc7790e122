#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collect/perf/perf_record.hpp"
#include "collect/perf/perf_ring.hpp"

namespace ddprof {

// Hands over the records of several rings in order of time, without copying them. Each ring is (nearly) in
// order by itself, so a heap of every ring's next record is enough.
class RingMerge {
 public:
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  // Calls handle(record) for everything older than `until`; `now` bounds what a time can be. Space goes back
  // to the kernel while a long round is still running.
  template <typename Handle>
  void run(std::span<PerfRing> rings, std::uint64_t until, std::uint64_t now, Handle&& handle) {
    heap_.clear();
    for (std::size_t i = 0; i < rings.size(); ++i) {
      rings[i].refresh();
      push_next(rings[i], i, now);
    }
    while (!heap_.empty() && heap_.front().time < until) {
      std::pop_heap(heap_.begin(), heap_.end(), is_later);
      std::size_t index = heap_.back().ring;
      heap_.pop_back();
      PerfRing& ring = rings[index];
      handle(ring.peek());
      ring.pop();
      if (ring.unpublished_bytes() > ring.capacity() / kPublishFraction) ring.publish();
      push_next(ring, index, now);
    }
    for (PerfRing& ring : rings) ring.publish();
  }

  // Records that were too short to have a time, or had one from the future.
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }

 private:
  static constexpr std::uint64_t kPublishFraction = 8;
  static constexpr std::uint64_t kSecond = 1'000'000'000;

  struct Next {
    std::uint64_t time;
    std::size_t ring;
  };
  static bool is_later(const Next& left, const Next& right) { return left.time > right.time; }

  void push_next(PerfRing& ring, std::size_t index, std::uint64_t now) {
    for (auto record = ring.peek(); !record.empty(); record = ring.peek()) {
      if (auto time = record_time(record)) {
        // A record of nonsense must not dam up the ring behind it.
        if (*time > now && *time - now > kSecond) {
          ++malformed_;
          time = 0;
        }
        heap_.push_back({*time, index});
        std::push_heap(heap_.begin(), heap_.end(), is_later);
        return;
      }
      ++malformed_;
      ring.pop();
    }
  }

  std::vector<Next> heap_;
  std::uint64_t malformed_ = 0;
};

}  // namespace ddprof
