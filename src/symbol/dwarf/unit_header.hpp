#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "elf/byte_cursor.hpp"
#include "symbol/dwarf/attribute_value.hpp"
#include "symbol/dwarf/dwarf_constants.hpp"

namespace ddprof {

// Offsets are from the start of the section.
struct UnitHeader {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t root = 0;           // its first entry
  std::uint64_t abbreviations = 0;  // in .debug_abbrev
  std::uint64_t dwo_id = 0;         // of version 5's skeleton and split units
  DwarfEncoding encoding;
  DwarfUnitType type = DwarfUnitType::compile;
};

// The length that opens a unit, a line program or a table; sets the size of offsets. The cursor fails when it
// is one of the reserved values.
[[nodiscard]] std::uint64_t read_initial_length(ByteCursor& cursor, DwarfEncoding& encoding);

// Where the unit after this one starts, without a look at the rest; nothing when it does not fit.
[[nodiscard]] std::optional<std::uint64_t> unit_end(std::span<const std::byte> info, std::uint64_t offset);

// Nothing when the unit is not all there, or of a version that is not 2 to 5.
[[nodiscard]] std::optional<UnitHeader> read_unit_header(std::span<const std::byte> info,
                                                         std::uint64_t offset);

}  // namespace ddprof
