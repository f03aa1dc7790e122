#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/frame.hpp"
#include "base/result.hpp"
#include "elf/read_limits.hpp"

namespace ddprof {

// One piece of code that a JIT compiler made, where it was first put.
struct JitCode {
  struct Line {
    std::uint32_t offset = 0;  // of the code that it holds from
    std::uint32_t line = 0;
    std::uint32_t file = 0;  // offset into `files`
  };

  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t index = 0;  // the compiler's number for it
  std::string name;
  std::string files;        // zero-terminated
  std::vector<Line> lines;  // sorted
  std::vector<std::byte> unwinding;
  std::uint64_t unwinding_header_bytes = 0;

  [[nodiscard]] std::size_t memory_bytes() const;
};

// What code is where in a process whose code comes, moves and is overwritten. Code that nothing is left of is
// forgotten, so that memory is bounded by what is there now.
class JitCodeMap {
 public:
  // A stretch of memory that holds one piece of code, or what is left of it.
  struct Place {
    std::uint64_t end = 0;
    std::uint64_t moved_by = 0;  // address = address where it was first put + moved_by, modulo 2^64
    std::uint32_t code = 0;
  };

  static constexpr std::size_t kMaxPlaces = 600'000;
  static constexpr std::size_t kPlaceBytes = 80;  // of a node of the map

  // What was there before is overwritten. False when `code` is one too many or too large.
  bool load(JitCode code, std::size_t max_codes, std::size_t max_bytes);
  // The code stays known at its old place until that is overwritten. False when no such code is known.
  bool move(std::uint64_t old_start, std::uint64_t new_start, std::uint64_t size, std::uint64_t index);

  struct Found {
    const JitCode* code = nullptr;
    std::uint64_t moved_by = 0;
  };
  [[nodiscard]] std::optional<Found> find(std::uint64_t address) const;
  // By where they begin.
  [[nodiscard]] const std::map<std::uint64_t, Place>& places() const { return places_; }
  [[nodiscard]] const JitCode& code(const Place& place) const { return codes_[place.code].code; }

  [[nodiscard]] std::size_t size() const { return codes_.size() - free_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_ + places_.size() * kPlaceBytes; }

 private:
  struct Entry {
    JitCode code;
    std::uint64_t last_start = 0;
    std::uint32_t uses = 0;  // places that hold it, and who is at work with it
  };

  void put(std::uint64_t start, std::uint32_t code, std::uint64_t moved_by);
  void clear(std::uint64_t start, std::uint64_t end);
  void release(std::uint32_t code);
  [[nodiscard]] std::optional<std::uint32_t> code_to_move(std::uint64_t old_start, std::uint64_t index) const;

  std::map<std::uint64_t, Place> places_;  // disjoint
  std::vector<Entry> codes_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_index_;  // stays whole when there is no memory for more
  std::size_t memory_bytes_ = 0;
};

// Code that a JIT compiler described in its jit-PID.dump: a file of records that grows while the program
// runs. It is read piece by piece, as it grows; what is not complete yet is left for the next time. Foreign
// bytes: what can be understood is taken, time and memory are bounded.
class JitDump {
 public:
  static constexpr std::size_t kMaxTextBytes = 1000;
  static constexpr std::size_t kMaxRecordBytes = 1U << 20U;  // of lines or unwinding information
  static constexpr std::size_t kMaxCodes = 500'000;

  explicit JitDump(const ReadLimits& limits = {}) : limits_(limits) {}

  // `bytes` are those of the file from offset() on: all of them, or at least kMaxRecordBytes. Takes the
  // records that are complete in a file of `file_bytes`, and moves offset() behind them, which may be behind
  // `bytes`: code itself is not read. Fails when this is no jitdump of this machine, or goes on with what
  // cannot be a record; what was read before stays known.
  Result<void> read(std::span<const std::byte> bytes, std::uint64_t file_bytes);
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  // Starts over: the file is another one.
  void reset() { *this = JitDump(limits_); }

  // Calls take() with what the code at a run-time address was made from; texts live until it returns. False
  // when no code is known there.
  bool find(std::uint64_t address, const std::function<void(const SourceCall&)>& take) const;

  // Unwinding information of one stretch of code: an .eh_frame as if it lay at `vaddr`, for code whose
  // addresses are less than those in memory by `moved_by` (modulo 2^64).
  struct Unwinding {
    std::uint64_t begin = 0;  // in memory
    std::uint64_t end = 0;
    std::uint64_t moved_by = 0;
    std::uint64_t vaddr = 0;
    std::span<const std::byte> eh_frame;
  };
  // In order of addresses.
  void for_each_unwinding(const std::function<void(const Unwinding&)>& take) const;

  [[nodiscard]] std::size_t size() const { return codes_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const { return codes_.memory_bytes(); }
  [[nodiscard]] std::uint64_t skipped_records() const { return skipped_records_; }

 private:
  // Belongs to the code that is loaded next.
  struct Pending {
    std::uint64_t code_start = 0;
    std::string files;
    std::vector<JitCode::Line> lines;
    std::vector<std::byte> unwinding;
    std::uint64_t unwinding_header_bytes = 0;
  };

  Result<bool> read_header(std::span<const std::byte> bytes);
  bool read_record(std::uint32_t id, std::span<const std::byte> payload, bool is_whole);
  bool read_load(std::span<const std::byte> payload);
  bool read_move(std::span<const std::byte> payload);
  bool read_lines(std::span<const std::byte> payload);
  bool read_unwinding(std::span<const std::byte> payload);

  ReadLimits limits_;
  std::uint64_t offset_ = 0;
  std::uint64_t line_shift_ = 0;  // what addresses of lines are too large by
  bool is_closed_ = false;
  Pending pending_;
  JitCodeMap codes_;
  std::uint64_t skipped_records_ = 0;
};

}  // namespace ddprof
