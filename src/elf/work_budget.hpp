#pragma once

#include <algorithm>
#include <cstdint>

#include "base/turns.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

// How much work and memory a file may cause. Work is a multiple of its size: honest files need a small part
// of it; in others, many entries mean the same long table or list. A unit of work takes some nanoseconds. The
// size of a file is no excuse past some seconds: 4 KiB on the disk can be a terabyte of zeros.
class WorkBudget {
 public:
  static constexpr std::uint64_t kMost = std::uint64_t{1} << 31U;

  explicit WorkBudget(const ReadLimits& limits = {}) : limits_(limits), bytes_left_(most_bytes()) {}

  // A file of this size takes part.
  void add_file(std::uint64_t bytes) {
    const std::uint64_t before = capacity_;
    capacity_ = std::min(capacity_ + std::min(bytes, kMost) * kPerByte, kMost);
    left_ += capacity_ - before;
  }
  // Work begins anew.
  void refill() { left_ = capacity_; }
  // False when there is nothing left.
  bool spend(std::uint64_t work) {
    left_ -= std::min(left_, work);
    rest_point_among_many();
    return left_ != 0;
  }
  [[nodiscard]] bool is_spent() const { return left_ == 0; }

  [[nodiscard]] const ReadLimits& limits() const { return limits_; }
  // Memory for what the file has packed, which is given back when it is let go. Twice the usual:
  // distributions pack what debuggers read, and only one thread reads it.
  [[nodiscard]] std::uint64_t bytes_left() const { return bytes_left_; }
  void take_bytes(std::uint64_t bytes) { bytes_left_ -= std::min(bytes_left_, bytes); }
  void give_back_bytes(std::uint64_t bytes) { bytes_left_ = std::min(bytes_left_ + bytes, most_bytes()); }

 private:
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 24U;
  static constexpr std::uint64_t kPerByte = 32;

  [[nodiscard]] std::uint64_t most_bytes() const { return 2 * limits_.bytes(); }

  ReadLimits limits_;
  std::uint64_t bytes_left_;
  std::uint64_t capacity_ = kBase;
  std::uint64_t left_ = kBase;
};

}  // namespace ddprof
