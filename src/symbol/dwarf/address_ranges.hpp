#pragma once

#include <cstdint>
#include <limits>

#include "elf/elf_file.hpp"
#include "symbol/dwarf/unit.hpp"

namespace ddprof {

// Where a file has code at all. Linkers leave debug information about functions that they threw away, and put
// them at 0, 1, -1 or -2: outside.
struct CodeBounds {
  std::uint64_t begin = 1;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max() - 2;

  static CodeBounds of(const ElfFile& file);
  [[nodiscard]] bool contain(std::uint64_t from, std::uint64_t to) const {
    return from < to && from >= begin && to <= end;
  }
};

struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Reads a list of ranges step by step: .debug_ranges of versions up to 4, .debug_rnglists of version 5.
class RangeList {
 public:
  // `value` is that of a DW_AT_ranges in `unit`.
  RangeList(const Unit& unit, const AttributeValue& value);

  // The next range that is not empty; false at the end of the list, or where it cannot be read.
  bool next(AddressRange& range);
  // Entries that were read, those included that are no ranges.
  [[nodiscard]] std::uint64_t entries() const { return entries_; }

 private:
  bool next_old(AddressRange& range);
  bool next_new(AddressRange& range);
  [[nodiscard]] std::uint64_t indexed();

  const Unit* unit_;
  ByteCursor cursor_;
  std::uint64_t base_;
  std::uint64_t entries_ = 0;
};

// The one range of an entry with DW_AT_low_pc and DW_AT_high_pc; empty when they do not make one.
[[nodiscard]] AddressRange plain_range(const Unit& unit, const AttributeValue& low_pc,
                                       const AttributeValue& high_pc);

}  // namespace ddprof
