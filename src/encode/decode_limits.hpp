#pragma once

#include <cstddef>

namespace ddprof {

// What a foreign file may make us hold: its bytes, and the profile made of them.
struct DecodeLimits {
  std::size_t inflated_bytes = std::size_t{256} << 20;
  std::size_t memory_bytes = std::size_t{1} << 30;
};

// Counts what a reader keeps. Formats with shared stacks can say much with few bytes.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : left_(bytes) {}

  // False when there is not that much left; the caller then gives up.
  [[nodiscard]] bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  void give_back(std::size_t bytes) { left_ += bytes; }

 private:
  std::size_t left_;
};

}  // namespace ddprof
