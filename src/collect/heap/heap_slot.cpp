#include "collect/heap/heap_slot.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ddprof {

HeapWeight HeapWeight::of(std::uint64_t size, std::uint64_t interval, std::uint64_t number) {
  // A process may claim anything of its own allocations.
  constexpr double kMost = 4e18;
  const auto bytes = static_cast<double>(size);
  const double chance = interval == 0 ? 1 : -std::expm1(-bytes / static_cast<double>(interval));
  if (chance <= 0)
    return {.bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(interval, 1ULL << 62U)), .objects = 1};
  const double objects = std::min(1 / chance, kMost);
  const double part = objects - std::floor(objects);
  const bool is_more =
      std::ldexp(static_cast<double>(ddprof_heap_hash(DDPROF_HEAP_HASH_SEED, number) >> 11U), -53) < part;
  return {.bytes = std::llround(std::min(bytes / chance, kMost)),
          .objects = static_cast<std::int64_t>(std::floor(objects)) + (is_more ? 1 : 0)};
}

void HeapSlot::pass_over(std::uint64_t words) {
  for (std::uint64_t i = 0; i < words; ++i)
    __atomic_store_n(&slot().ring[(tail_ + i) & (kWords - 1)], 0, __ATOMIC_RELAXED);
  tail_ += words;
  __atomic_store_n(&slot().tail, tail_, __ATOMIC_RELEASE);
  incomplete_since_.reset();
}

std::optional<HeapRecord> HeapSlot::read(Nanoseconds now, bool has_ended) {
  while (true) {
    const std::uint64_t head = load(slot().head);
    const std::uint64_t available = head - tail_;
    if (available == 0) return std::nullopt;
    if (available > kWords) {  // no library moves its head that far
      ++malformed_;
      pass_over(kWords);
      tail_ = head;
      __atomic_store_n(&slot().tail, tail_, __ATOMIC_RELEASE);
      return std::nullopt;
    }
    const std::uint64_t first = word(tail_);
    HeapRecord record;
    std::memcpy(&record.header, &first, sizeof first);
    const std::uint64_t length = kHeaderWords + record.header.payload;
    const bool is_complete =
        record.header.kind == DDPROF_HEAP_FRAMES || record.header.kind == DDPROF_HEAP_RAW;
    const bool is_begun = record.header.kind == DDPROF_HEAP_BEGUN;
    if (!is_complete && first != 0 && !is_begun) {
      ++malformed_;
      pass_over(available);
      continue;
    }
    if ((is_complete || is_begun) && length > available) {
      ++malformed_;
      pass_over(available);
      continue;
    }
    if (!is_complete) {
      if (!incomplete_since_) incomplete_since_ = now;
      if (!has_ended && now - *incomplete_since_ < kPatience) return std::nullopt;
      ++malformed_;
      pass_over(is_begun ? length : available);
      continue;
    }
    std::array<std::uint64_t, kHeaderWords> words{first};
    for (std::uint64_t i = 1; i < kHeaderWords; ++i) words[i] = word(tail_ + i);
    record.header = std::bit_cast<ddprof_heap_record>(words);
    payload_.resize(length - kHeaderWords);
    for (std::uint64_t i = 0; i < payload_.size(); ++i) payload_[i] = word(tail_ + kHeaderWords + i);
    record.payload = payload_;
    pass_over(length);
    return record;
  }
}

ddprof_heap_counters HeapSlot::take_counters() {
  using Words = std::array<std::uint64_t, sizeof(ddprof_heap_counters) / 8>;
  const auto* counters = reinterpret_cast<const std::uint64_t*>(&slot().counters);
  auto* told = reinterpret_cast<std::uint64_t*>(&slot().told);
  Words grown{};
  for (std::size_t i = 0; i < grown.size(); ++i) {
    const std::uint64_t now = load(counters[i]);
    const std::uint64_t before = load(told[i]);
    grown[i] = now >= before ? now - before : 0;
    __atomic_store_n(&told[i], now, __ATOMIC_RELAXED);
  }
  return std::bit_cast<ddprof_heap_counters>(grown);
}

std::uint64_t HeapSlot::interval() const {
  return std::max(load(slot().pace.interval), load(slot().control.interval));
}

ddprof_heap_block HeapSlot::read_block(std::size_t place) const {
  const ddprof_heap_block& block = slot().blocks[place];
  return {.size = load(block.size),
          .interval = load(block.interval),
          .stack = load(block.stack),
          .time = load(block.time)};
}

void HeapSlot::publish(std::span<const ddprof_heap_module> modules) {
  const std::uint32_t next = load(slot().control.map) + 1;
  ddprof_heap_map& map = slot().maps[next & 1U];
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(modules.size(), DDPROF_HEAP_MODULES));
  std::copy_n(modules.begin(), count, map.modules);
  map.version = next;
  __atomic_store_n(&map.count, count, __ATOMIC_RELAXED);
  __atomic_store_n(&slot().control.map, next, __ATOMIC_RELEASE);
}

}  // namespace ddprof
