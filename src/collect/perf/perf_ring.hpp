#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/result.hpp"

namespace ddprof {

// The reading side of one perf ring: a control page, then 2^n pages that the kernel writes records into.
//
// Records are looked at in place. One that wraps around the end is put together in a scratch buffer: mapping
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

}  // namespace ddprof
