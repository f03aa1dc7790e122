#include "collect/perf/perf_ring.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ddprof {

Result<PerfRing> PerfRing::map(int fd, std::size_t data_pages) {
  auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  MappedRegion region = TRY(MappedRegion::map_shared(fd, (1 + data_pages) * page));
  auto* control = reinterpret_cast<perf_event_mmap_page*>(region.data());
  PerfRing ring = over(*control, region.bytes().subspan(page));
  ring.region_ = std::move(region);
  return ring;
}

Result<void> PerfRing::take_over(int fd) {
  auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t data_pages = data_.size() / page;
  region_.abandon();
  *this = TRY(map(fd, data_pages));
  return {};
}

PerfRing PerfRing::over(perf_event_mmap_page& control, std::span<const std::byte> data) {
  PerfRing ring;
  ring.control_ = &control;
  ring.data_ = data;
  ring.position_ = ring.published_ = ring.head_ = control.data_tail;
  return ring;
}

std::uint64_t PerfRing::load_head() const {
  // Pairs with the kernel's barrier before it moves the head: what is before the head is written.
  return std::atomic_ref(control_->data_head).load(std::memory_order_acquire);
}

void PerfRing::refresh() { head_ = load_head(); }

std::uint64_t PerfRing::pending_bytes() const { return load_head() - position_; }

void PerfRing::read_wrapped(std::uint64_t position, std::span<std::byte> to) const {
  std::size_t offset = position & (data_.size() - 1);
  std::size_t before_end = std::min(to.size(), data_.size() - offset);
  std::memcpy(to.data(), data_.data() + offset, before_end);
  std::memcpy(to.data() + before_end, data_.data(), to.size() - before_end);
}

std::span<const std::byte> PerfRing::peek() {
  if (!current_.empty() || position_ == head_) return current_;

  constexpr std::size_t kUnit = 8;
  std::uint64_t visible = head_ - position_;
  perf_event_header header{};
  bool is_sound = visible <= data_.size() && visible >= sizeof header && position_ % kUnit == 0;
  if (is_sound) {
    read_wrapped(position_, std::as_writable_bytes(std::span(&header, 1)));
    is_sound = header.size >= sizeof header && header.size % kUnit == 0 && header.size <= visible;
  }
  if (!is_sound) {
    ++malformed_;
    position_ = head_;
    return {};
  }
  std::size_t offset = position_ & (data_.size() - 1);
  if (offset + header.size <= data_.size()) {
    current_ = data_.subspan(offset, header.size);
  } else {
    scratch_.resize(std::max<std::size_t>(scratch_.size(), header.size));
    auto assembled = std::span(scratch_).first(header.size);
    read_wrapped(position_, assembled);
    current_ = assembled;
  }
  return current_;
}

void PerfRing::pop() {
  position_ += current_.size();
  current_ = {};
}

void PerfRing::publish() {
  if (published_ == position_) return;
  published_ = position_;
  // Pairs with the kernel's read of the tail: our reads of the records are done before it may overwrite them.
  std::atomic_ref(control_->data_tail).store(position_, std::memory_order_release);
}

}  // namespace ddprof
