#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/turns.hpp"

namespace ddprof {

class Scratch;

// How much of the profiler's memory reading one foreign file may take: a quarter of --max-memory, because
// three threads read files at a time. Whatever a file claims to hold, its reader stops there, and says so.
struct ReadLimits {
  static constexpr std::uint64_t kDefaultMemory = std::uint64_t{256} << 20U;
  static constexpr std::uint64_t kNoLimit = std::uint64_t{4} << 30U;  // taken for it when there is none

  std::uint64_t max_memory = kDefaultMemory;  // --max-memory in bytes; 0: no limit
  Scratch* scratch = nullptr;                 // for what is packed and larger; null: that is not read

  [[nodiscard]] constexpr std::uint64_t bytes() const {
    return (max_memory == 0 ? kNoLimit : max_memory) / 4;
  }
  // How many things of `size` bytes fit into one of so many equal parts of it.
  [[nodiscard]] constexpr std::size_t count(std::size_t size, unsigned parts) const {
    return static_cast<std::size_t>(bytes() / parts / size);
  }

  [[nodiscard]] constexpr std::uint64_t mebibytes() const {
    return (max_memory == 0 ? kNoLimit : max_memory) >> 20U;
  }

  // "read symbols: 90000000 bytes are too large to read with --max-memory 256"
  [[nodiscard]] Error too_large(std::string_view operation, std::uint64_t size) const {
    return make_error(ErrorCode::exhausted, "{}: {} bytes are too large to read with --max-memory {}",
                      operation, size, mebibytes());
  }
};

// Room on a disk for what is too large for memory: packed debug information is unpacked there in pieces.
class Scratch {
 public:
  using Append = std::function<Result<void>(std::span<const std::byte> piece)>;
  using Produce = std::function<Result<void>(const Append& append)>;

  virtual ~Scratch() = default;
  // Maps what `produce` has appended, `bytes` in all. Fails with `exhausted` when there is no such room.
  virtual Result<MappedRegion> fill(std::uint64_t bytes, const Produce& produce) = 0;
};

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
