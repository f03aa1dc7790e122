#pragma once

#include <cstdint>
#include <string_view>

#include "elf/byte_cursor.hpp"
#include "symbol/dwarf/dwarf_constants.hpp"

namespace ddprof {

// What the size of values depends on, besides their form.
struct DwarfEncoding {
  std::uint8_t version = 0;
  std::uint8_t address_size = 8;
  std::uint8_t offset_size = 4;  // 8 in the 64-bit format

  friend auto operator<=>(const DwarfEncoding&, const DwarfEncoding&) = default;
};

// A value as it lies in the bytes: what it means (an index, an offset, an address) is up to its form.
struct AttributeValue {
  DwarfForm form = DwarfForm::none;
  std::uint64_t number = 0;
  std::string_view text;  // of DwarfForm::string

  [[nodiscard]] bool exists() const { return form != DwarfForm::none; }
};

// Reads a value; blocks are skipped over. Fails the cursor at a form that is not known. `implicit` is the
// value that the abbreviation holds for DW_FORM_implicit_const.
[[nodiscard]] AttributeValue read_value(ByteCursor& cursor, DwarfForm form, const DwarfEncoding& encoding,
                                        std::int64_t implicit = 0);

// The bytes that a value takes whatever it is; -1 when that depends on the value, or the form is not known.
[[nodiscard]] int fixed_size(DwarfForm form, const DwarfEncoding& encoding);

// An address rather than a number of bytes: DW_AT_high_pc may be either.
[[nodiscard]] bool is_address_form(DwarfForm form);

}  // namespace ddprof
