#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "wire/heap.h"

namespace ddprof {

// What the library in the target should do.
struct HeapSettings {
  std::uint64_t interval = 524288;       // mean of the bytes between two samples
  std::uint64_t max_per_second = 2'000;  // samples of one process
  bool has_live_blocks = false;
  Pid root{};  // the first process of the target
};

// The two memory files that are shared with processes of the target: see wire/heap.h. Made by the process
// that opens the collector, which has to stay there: its descriptors are how the library finds them. Sparse:
// what no process has touched takes no memory.
class HeapArena {
 public:
  static Result<HeapArena> create(const HeapSettings& settings);

  // For the environment of the target.
  [[nodiscard]] const std::string& location() const { return location_; }
  [[nodiscard]] ddprof_heap_header& header() const {
    return *reinterpret_cast<ddprof_heap_header*>(header_.data());
  }
  [[nodiscard]] const MappedRegion& tables() const { return tables_; }
  Result<MappedRegion> map_slot(std::uint32_t number) const;
  // Gives the memory of a slot back and lets another process have it.
  void release_slot(std::uint32_t number) const;

 private:
  HeapArena() = default;

  UniqueFd arena_fd_, tables_fd_;
  MappedRegion header_, tables_;
  std::string location_;
};

}  // namespace ddprof
