#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/mapped_region.hpp"
#include "unwind/module_map.hpp"
#include "unwind/unwind_table.hpp"
#include "wire/heap.h"

namespace ddprof {

// Copies unwind tables to where the libraries in the target read them. They are only ever added to: a library
// may be reading at any moment, and those of an earlier worker are used on. When there is no room left,
// stacks in later files are finished by the profiler.
class TablePublisher {
 public:
  // `memory` outlives it.
  explicit TablePublisher(const MappedRegion& memory);

  // What earlier workers have published. A dictionary that begins with them has the same numbers.
  [[nodiscard]] std::span<const ddprof_unwind_rule> rules() const;

  // The modules of a process for its slot. Their tables are published, and the rules of `dictionary`.
  std::vector<ddprof_heap_module> describe(const ModuleMap& modules, const RuleDictionary& dictionary);

 private:
  std::uint64_t find_or_publish(const UnwindTable& table);
  std::uint64_t publish(const UnwindTable& table, std::uint64_t hash);
  void publish_rules(const RuleDictionary& dictionary);
  std::optional<std::uint64_t> allocate(std::size_t bytes);
  [[nodiscard]] ddprof_heap_tables& tables() const {
    return *reinterpret_cast<ddprof_heap_tables*>(memory_.data());
  }
  template <typename Part>
  [[nodiscard]] Part* at(std::uint64_t offset) const {
    return reinterpret_cast<Part*>(memory_.data() + offset);
  }

  const MappedRegion& memory_;
  std::uint64_t last_ = 0;                                      // of the list
  absl::flat_hash_map<std::uint64_t, std::uint64_t> by_hash_;   // where a table with that content is
  absl::flat_hash_map<std::uint64_t, std::uint64_t> by_table_;  // by UnwindTable::id(); 0: there was no room
};

}  // namespace ddprof
