#pragma once

#include <stdint.h>

#include "wire/heap.h"

namespace inject {

// Says of most addresses at once that no sampled block is there: a counter for each page, in memory of our
// own. Pages that are 4 GiB apart share one; the live set knows better.
class PageFilter {
 public:
  static constexpr uint32_t kPages = 1U << 20U;

  [[nodiscard]] bool may_have(uint64_t address) const {
    return __atomic_load_n(&counts_[place(address)], __ATOMIC_RELAXED) != 0;
  }
  void add(uint64_t address) {
    uint8_t& count = counts_[place(address)];
    uint8_t now = __atomic_load_n(&count, __ATOMIC_RELAXED);
    while (now != kStuck &&
           !__atomic_compare_exchange_n(&count, &now, now + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  void remove(uint64_t address) {
    uint8_t& count = counts_[place(address)];
    uint8_t now = __atomic_load_n(&count, __ATOMIC_RELAXED);
    while (now != kStuck && now != 0 &&
           !__atomic_compare_exchange_n(&count, &now, now - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  // From now on each address there is looked up.
  void stick(uint64_t address) { __atomic_store_n(&counts_[place(address)], kStuck, __ATOMIC_RELAXED); }

  uint8_t counts_[kPages];  // public for its only owner, which makes it zero after a fork

 private:
  static constexpr uint8_t kStuck = 255;  // too many to count
  static uint32_t place(uint64_t address) { return (address >> 12U) & (kPages - 1); }
};

// Buckets of the live set that were full when a block was added: only from these on others are looked at. Of
// our own memory; a bit that is set for no reason costs a look.
struct FullBuckets {
  static constexpr uint32_t kBuckets = DDPROF_HEAP_LIVE_KEYS / DDPROF_HEAP_LIVE_BUCKET;

  [[nodiscard]] bool has(uint32_t bucket) const {
    return (__atomic_load_n(&bits[bucket / 8], __ATOMIC_RELAXED) >> (bucket % 8) & 1U) != 0;
  }
  void add(uint32_t bucket) {
    __atomic_fetch_or(&bits[bucket / 8], static_cast<uint8_t>(1U << (bucket % 8)), __ATOMIC_RELEASE);
  }

  uint8_t bits[kBuckets / 8];
};

// The sampled blocks that are still allocated, in memory that the profiler maps too. No lock: a key is
// claimed by compare-and-swap, and complete when its lowest bit is cleared.
class LiveSet {
 public:
  enum class Added : uint8_t { yes, replaced, no_room };

  LiveSet(ddprof_heap_slot& slot, FullBuckets& full) : slot_(slot), full_(full) {}

  Added add(uint64_t address, const ddprof_heap_block& block) {
    if (const uint32_t old = find(address); old != kNowhere) {  // its end was not seen
      uint64_t expected = address;
      if (__atomic_compare_exchange_n(&slot_.keys[old], &expected, address | kBeingWritten, false,
                                      __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        write(old, address, block);
        return Added::replaced;
      }
    }
    for (uint32_t probe = 0; probe < kProbedKeys; ++probe) {
      const uint32_t place = place_of(address, probe);
      if (probe == DDPROF_HEAP_LIVE_BUCKET) full_.add(bucket_of(address));
      uint64_t free = 0;
      if (!__atomic_compare_exchange_n(&slot_.keys[place], &free, address | kBeingWritten, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
      write(place, address, block);
      return Added::yes;
    }
    return Added::no_room;
  }

  // What was known of the block. False: it is not one of them.
  bool remove(uint64_t address, ddprof_heap_block* block = nullptr) {
    const uint32_t place = find(address);
    if (place == kNowhere) return false;
    if (block != nullptr) *block = slot_.blocks[place];
    uint64_t expected = address;
    return __atomic_compare_exchange_n(&slot_.keys[place], &expected, 0, false, __ATOMIC_RELEASE,
                                       __ATOMIC_RELAXED);
  }

 private:
  // The key is ours: nobody reads the block until it is complete.
  void write(uint32_t place, uint64_t address, const ddprof_heap_block& block) {
    slot_.blocks[place] = block;
    __atomic_store_n(&slot_.keys[place], address, __ATOMIC_RELEASE);
  }

  static constexpr uint64_t kBeingWritten = 1;
  static constexpr uint32_t kProbedKeys = DDPROF_HEAP_PROBES * DDPROF_HEAP_LIVE_BUCKET;
  static constexpr uint32_t kNowhere = ~0U;

  static uint32_t bucket_of(uint64_t address) {
    const auto hash = static_cast<uint32_t>(((address >> 4U) * 0x9e3779b97f4a7c15U) >> 40U);
    return hash % FullBuckets::kBuckets;
  }
  static uint32_t place_of(uint64_t address, uint32_t probe) {
    const uint32_t bucket = (bucket_of(address) + probe / DDPROF_HEAP_LIVE_BUCKET) % FullBuckets::kBuckets;
    return bucket * DDPROF_HEAP_LIVE_BUCKET + probe % DDPROF_HEAP_LIVE_BUCKET;
  }

  [[nodiscard]] uint32_t find(uint64_t address) const {
    for (uint32_t probe = 0; probe < kProbedKeys; ++probe) {
      const uint32_t place = place_of(address, probe);
      if (probe == DDPROF_HEAP_LIVE_BUCKET && !full_.has(bucket_of(address))) break;
      if (__atomic_load_n(&slot_.keys[place], __ATOMIC_ACQUIRE) == address) return place;
    }
    return kNowhere;
  }

  ddprof_heap_slot& slot_;
  FullBuckets& full_;
};

}  // namespace inject
