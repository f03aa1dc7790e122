#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "collect/heap/heap_slot.hpp"

// What a hostile process writes into its slot: the head, the tail, and the words from the tail on; then what
// it writes while it is read, and so on.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddprof;
  auto memory = MappedRegion::map_anonymous_shared(sizeof(ddprof_heap_slot));
  auto& shared = *reinterpret_cast<ddprof_heap_slot*>(memory->data());
  HeapSlot slot(std::move(memory).value());
  std::span<const std::uint8_t> left(data, size);
  Nanoseconds now{};
  while (left.size() >= 4) {
    std::uint16_t moved = 0;
    std::memcpy(&moved, left.data(), sizeof moved);
    const std::size_t words = std::min<std::size_t>(left[2] + std::size_t{1}, (left.size() - 4) / 8);
    for (std::size_t i = 0; i < words; ++i)
      std::memcpy(&shared.ring[(shared.head + i) % std::size(shared.ring)], left.data() + 4 + i * 8, 8);
    shared.head += (left[3] & 1U) != 0 ? words : moved;
    now += std::chrono::milliseconds(left[3]);
    left = left.subspan(4 + words * 8);
    for (int i = 0; i < 16; ++i) {
      const auto record = slot.read(now);
      if (!record) break;
      const HeapWeight weight =
          HeapWeight::of(record->header.size, record->header.interval, record->header.time);
      if (weight.bytes < 0 || weight.objects < 1) __builtin_trap();
    }
  }
  return 0;
}
