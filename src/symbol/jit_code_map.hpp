#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

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

}  // namespace ddprof
