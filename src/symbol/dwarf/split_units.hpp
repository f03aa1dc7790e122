#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "elf/read_limits.hpp"
#include "symbol/dwarf/debug_info.hpp"
#include "symbol/dwarf/dwarf_file.hpp"
#include "symbol/dwarf/unit.hpp"

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

// Split DWARF: most of a unit is in a file of its own (.dwo), or in one for the whole program (.dwp). What
// stays is a skeleton: addresses, lines, and where the rest is.
class SplitUnits {
 public:
  SplitUnits(DebugFileSource& others, DwarfProblem& problem, WorkBudget& budget)
      : others_(others), problem_(problem), budget_(budget) {}

  // The rest of a skeleton; null when it is none, or its rest cannot be found. Valid until the next call.
  std::shared_ptr<const Unit> find(const Unit& skeleton);
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  std::shared_ptr<const Unit> find_in_package(const Unit& skeleton);
  std::shared_ptr<const Unit> find_in_file(const Unit& skeleton);
  DwarfFile* package();

  DebugFileSource& others_;
  DwarfProblem& problem_;
  WorkBudget& budget_;
  bool has_asked_for_package_ = false;
  std::optional<DwarfFile> package_;
  std::optional<DwarfFile> file_;  // the .dwo that was read last
};

}  // namespace ddprof
