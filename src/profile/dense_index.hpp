#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ddprof {

// Folds one more word into a hash: the two halves of a 64x64-bit product, which mixes every bit in two
// instructions.
inline std::uint64_t hash_mix(std::uint64_t hash, std::uint64_t word) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(hash ^ word ^ 0x9e3779b97f4a7c15U) * 0xd6e8feb86659fd93U;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Finds values that live in someone else's vector by hash: an open-addressing table of (hash, position)
// pairs. The owner keeps the values densely, numbered in order of arrival, and says what "equal" means; so
// one table serves strings, frames, stacks and threads without storing any of them twice.
class DenseIndex {
 public:
  static constexpr std::uint32_t kNotFound = 0xffffffff;

  // The position of the value with this hash for which `equal(position)` holds.
  template <typename Equal>
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return kNotFound;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t at = tag & mask();; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.position == kNotFound) return kNotFound;
      if (slot.tag == tag && equal(slot.position)) return slot.position;
    }
  }

  // Notes that the owner is about to append a value with this hash; returns its position.
  std::uint32_t append(std::uint64_t hash) {
    // At most 3/4 full, so that a search ends soon.
    if ((std::size_t{size_} + 1) * 4 > slots_.size() * 3) grow();
    place({tag_of(hash), size_});
    return size_++;
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }

  // Forgets everything and keeps the memory for the next period.
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    size_ = 0;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t position = kNotFound;
  };

  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 32)); }
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }

  void place(Slot slot) {
    std::size_t at = slot.tag & mask();
    while (slots_[at].position != kNotFound) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : slots_.size() * 2));
    for (Slot slot : old) {
      if (slot.position != kNotFound) place(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two
  std::uint32_t size_ = 0;
};

}  // namespace ddprof
