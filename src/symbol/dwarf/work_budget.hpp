#pragma once

#include <algorithm>
#include <cstdint>

namespace ddprof {

// How much work a file may cause: a multiple of its size. Honest files need a small part of it; in others,
// many entries mean the same long table or list. A unit of work takes some nanoseconds.
class WorkBudget {
 public:
  // A file of this size takes part.
  void add_file(std::uint64_t bytes) {
    capacity_ += bytes * kPerByte;
    left_ += bytes * kPerByte;
  }
  // Work begins anew.
  void refill() { left_ = capacity_; }
  // False when there is nothing left.
  bool spend(std::uint64_t work) {
    left_ -= std::min(left_, work);
    return left_ != 0;
  }
  [[nodiscard]] bool is_spent() const { return left_ == 0; }

 private:
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 24U;
  static constexpr std::uint64_t kPerByte = 32;

  std::uint64_t capacity_ = kBase;
  std::uint64_t left_ = kBase;
};

}  // namespace ddprof
