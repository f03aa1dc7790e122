#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "symbol/dwarf/address_ranges.hpp"
#include "symbol/dwarf/dwarf_file.hpp"

namespace ddprof {

// Which unit tells about an address. Taken from .debug_aranges for the units that are in there, from the root
// entries of the others, and from their lines where those say nothing.
class UnitIndex {
 public:
  static UnitIndex build(DwarfFile& file, const CodeBounds& bounds);

  // The number of the unit in file.units().
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t memory_bytes() const { return ranges_.capacity() * sizeof(Range); }

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint32_t size = 0;
    std::uint32_t unit = 0;

    [[nodiscard]] std::uint64_t end() const { return begin + size; }
  };

  class Builder;
  std::vector<Range> ranges_;  // sorted, and none overlaps another
};

}  // namespace ddprof
