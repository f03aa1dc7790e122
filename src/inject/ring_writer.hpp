#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/heap.h"

namespace inject {

// One record of the ring: room is reserved by moving the head, and the first word says that it is complete.
// Several threads may be at it; nothing waits. A thread that ends in between leaves a record that is never
// complete, which the reader passes over after a while.
class RingWriter {
 public:
  // False: there is no room.
  bool reserve(ddprof_heap_slot& slot, uint64_t words) {
    slot_ = &slot;
    uint64_t head = __atomic_load_n(&slot.head, __ATOMIC_RELAXED);
    do {
      const uint64_t used = head - __atomic_load_n(&slot.tail, __ATOMIC_ACQUIRE);
      if (used > kWords || words > kWords - used) return false;
    } while (!__atomic_compare_exchange_n(&slot.head, &head, head + words, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    at_ = head;
    ddprof_heap_record begun{};
    begun.kind = DDPROF_HEAP_BEGUN;
    begun.payload = static_cast<uint32_t>(words - kHeaderWords);
    put_first(begun);
    return true;
  }

  void put(uint64_t offset, uint64_t value) { slot_->ring[(at_ + offset) & (kWords - 1)] = value; }
  // `record.payload` is as it was reserved.
  void commit(const ddprof_heap_record& record) {
    uint64_t words[kHeaderWords];
    __builtin_memcpy(words, &record, sizeof words);
    for (size_t i = 1; i < kHeaderWords; ++i) put(i, words[i]);
    put_first(record);
  }

  static constexpr uint64_t kHeaderWords = sizeof(ddprof_heap_record) / 8;

 private:
  static constexpr uint64_t kWords = DDPROF_HEAP_RING_BYTES / 8;

  void put_first(const ddprof_heap_record& record) {
    uint64_t word = 0;
    __builtin_memcpy(&word, &record, sizeof word);
    __atomic_store_n(&slot_->ring[at_ & (kWords - 1)], word, __ATOMIC_RELEASE);
  }

  ddprof_heap_slot* slot_ = nullptr;
  uint64_t at_ = 0;
};

}  // namespace inject
