#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "elf/byte_cursor.hpp"
#include "symbol/dwarf/attributes.hpp"
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

class DwarfFile;

// Where the parts of a unit start in the sections of its file: not at 0 in a package (.dwp), where those of
// many units follow each other.
struct UnitBases {
  std::uint64_t str_offsets = 0;
  std::uint64_t rnglists = 0;
};

// An entry, wherever it is.
struct EntryReference {
  DwarfFile* file = nullptr;
  std::uint64_t offset = 0;  // in its .debug_info
};

// A unit: how to read its entries, and what its root entry says about all of them.
class Unit {
 public:
  Unit(DwarfFile& file, const UnitHeader& header, std::shared_ptr<const AbbreviationTable> abbreviations,
       const UnitBases& bases = {});

  // Of a split unit: addresses and old ranges are in the file of its skeleton.
  void attach_to(const Unit& skeleton);

  [[nodiscard]] DwarfFile& file() const { return *file_; }
  [[nodiscard]] const UnitHeader& header() const { return header_; }
  [[nodiscard]] const DwarfEncoding& encoding() const { return header_.encoding; }
  [[nodiscard]] const AbbreviationTable& abbreviations() const { return *abbreviations_; }
  // At an entry of this unit; ends where the unit ends.
  [[nodiscard]] ByteCursor cursor_at(std::uint64_t offset) const;
  [[nodiscard]] bool contains(std::uint64_t offset) const {
    return offset >= header_.root && offset < header_.end;
  }

  [[nodiscard]] std::string_view string(const AttributeValue& value) const;
  [[nodiscard]] std::optional<std::uint64_t> address(const AttributeValue& value) const;
  // Entry `index` of the unit's part of .debug_addr.
  [[nodiscard]] std::optional<std::uint64_t> indexed_address(std::uint64_t index) const;
  [[nodiscard]] std::optional<EntryReference> reference(const AttributeValue& value) const;
  // Where the list that DW_AT_ranges means starts, in .debug_ranges or, from version 5 on, .debug_rnglists.
  [[nodiscard]] std::optional<std::uint64_t> range_list(const AttributeValue& value) const;
  [[nodiscard]] std::span<const std::byte> range_section() const;

  // What the root entry says.
  struct Root {
    DwarfTag tag{};
    AttributeValue name;
    AttributeValue comp_dir;
    AttributeValue low_pc;
    AttributeValue high_pc;
    AttributeValue ranges;
    AttributeValue dwo_name;
    std::optional<std::uint64_t> stmt_list;
    std::optional<std::uint64_t> dwo_id;
    std::uint64_t language = 0;
    std::uint64_t first_child = 0;  // offset; the end of the unit when there is none
  };
  [[nodiscard]] const Root& root() const { return root_; }
  [[nodiscard]] std::uint64_t base_address() const { return base_address_; }

 private:
  void read_root();
  void take_root_attribute(DwarfAttribute attribute, const AttributeValue& value);
  void set_default_bases();

  DwarfFile* file_;
  DwarfFile* address_file_;  // where .debug_addr and .debug_ranges are
  UnitHeader header_;
  std::shared_ptr<const AbbreviationTable> abbreviations_;
  UnitBases bases_;
  Root root_;
  std::optional<std::uint64_t> str_offsets_base_;
  std::optional<std::uint64_t> addr_base_;
  std::optional<std::uint64_t> rnglists_base_;
  std::uint64_t gnu_ranges_base_ = 0;
  std::uint64_t old_ranges_base_ = 0;  // the above, where it applies: not to a skeleton's own ranges
  std::uint64_t base_address_ = 0;
};

}  // namespace ddprof
