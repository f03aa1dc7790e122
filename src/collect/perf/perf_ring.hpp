#pragma once

#include <linux/perf_event.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "collect/perf/perf_record.hpp"

namespace ddprof {

// The reading side of one perf ring: a control page, then 2^n pages that the kernel writes records into.
//
// Records are read in place. One that wraps around the end is put together in a scratch buffer: mapping
// the ring twice in a row, which would make every record contiguous, is refused by Linux 6.17 and newer.
class PerfRing {
 public:
  PerfRing() = default;
  PerfRing(PerfRing&&) noexcept = default;
  PerfRing& operator=(PerfRing&&) noexcept = default;

  // Maps the ring of a perf event. `data_pages` is a power of two.
  static Result<PerfRing> map(int fd, std::size_t data_pages);
  // After fork(): maps the same ring into this process, which goes on where the last reader has published.
  Result<void> take_over(int fd);
  // Reads foreign memory that is laid out like a ring; `data` has a power of two bytes.
  static PerfRing over(perf_event_mmap_page& control, std::span<const std::byte> data);

  // Makes visible what the kernel has written until now.
  void refresh();
  // The next visible record, valid until pop(); empty when there is none. Nonsense in the ring (a size of 0,
  // beyond the end, or not a multiple of 8) gives up all that is visible and counts as one malformed record.
  std::span<const std::byte> peek();
  void pop();
  // Gives the space of popped records back to the kernel.
  void publish();

  [[nodiscard]] std::uint64_t unpublished_bytes() const { return position_ - published_; }
  // How much the kernel has written that is not popped, right now.
  [[nodiscard]] std::uint64_t pending_bytes() const;
  [[nodiscard]] std::size_t capacity() const { return data_.size(); }
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }

 private:
  [[nodiscard]] std::uint64_t load_head() const;
  void read_wrapped(std::uint64_t position, std::span<std::byte> to) const;

  MappedRegion region_;
  perf_event_mmap_page* control_ = nullptr;
  std::span<const std::byte> data_;
  std::uint64_t head_ = 0;       // end of what is visible
  std::uint64_t position_ = 0;   // start of the next record
  std::uint64_t published_ = 0;  // what the kernel knows as the tail
  std::span<const std::byte> current_;
  std::vector<std::byte> scratch_;
  std::uint64_t malformed_ = 0;
};

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
