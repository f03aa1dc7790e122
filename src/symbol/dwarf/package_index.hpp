#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "elf/work_budget.hpp"

namespace ddprof {

// Where the parts of a unit are in the sections of a package (.dwp).
struct PackageEntry {
  std::uint32_t info = 0;
  std::uint32_t abbreviations = 0;
  std::uint32_t str_offsets = 0;
  std::uint32_t rnglists = 0;
};

// Looks a unit up in .debug_cu_index: version 2 (GNU, for DWARF 4) and 5.
[[nodiscard]] std::optional<PackageEntry> find_in_package_index(std::span<const std::byte> index,
                                                                std::uint64_t dwo_id, WorkBudget& budget);

}  // namespace ddprof
