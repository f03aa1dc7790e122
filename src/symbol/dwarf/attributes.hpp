#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "elf/byte_cursor.hpp"
#include "symbol/dwarf/dwarf_constants.hpp"
#include "symbol/dwarf/dwarf_problem.hpp"

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

struct AttributeSpec {
  DwarfAttribute attribute = DwarfAttribute::none;
  DwarfForm form = DwarfForm::none;
  std::int64_t implicit = 0;
};

// What an entry (DIE) is to a search for calls.
enum class EntryKind : std::uint8_t {
  other,
  scope,     // gives its name to what it contains: a namespace
  type,      // as well, but functions with code are rarely in there: a class
  function,  // a subprogram or an inlined call
  block,     // part of a function
};

// The shape of an entry.
struct Abbreviation {
  std::uint64_t code = 0;
  std::uint32_t first_attribute = 0;
  std::uint32_t attribute_count = 0;
  std::uint32_t first_step = 0;
  DwarfTag tag{};
  EntryKind kind = EntryKind::other;
  bool has_children = false;
  bool has_sibling = false;
  bool has_code = false;  // says where its code is
};

// The shapes of the entries of one unit (or several), made ready for passing over entries quickly.
class AbbreviationTable {
 public:
  // Reads the table at `offset`. With `only`, stops at the abbreviation of that code.
  static AbbreviationTable parse(std::span<const std::byte> section, std::uint64_t offset,
                                 const DwarfEncoding& encoding, DwarfProblem& problem,
                                 std::uint64_t only = 0);

  [[nodiscard]] const Abbreviation* find(std::uint64_t code) const {
    if (code - 1 < dense_) return &list_[code - 1];
    return find_sparse(code);
  }
  [[nodiscard]] std::span<const AttributeSpec> attributes(const Abbreviation& abbreviation) const {
    return std::span(attributes_).subspan(abbreviation.first_attribute, abbreviation.attribute_count);
  }
  // Abbreviations and attributes that were read to make it.
  [[nodiscard]] std::size_t parts_read() const { return parts_read_; }
  // Moves the cursor from the first attribute of an entry to its end.
  void skip_attributes(const Abbreviation& abbreviation, ByteCursor& cursor) const;
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  // So many bytes of fixed size, then one value of a form whose size must be read.
  struct SkipStep {
    std::uint32_t bytes = 0;
    DwarfForm then = DwarfForm::none;  // none: that was the last step
  };

  [[nodiscard]] const Abbreviation* find_sparse(std::uint64_t code) const;
  void read_attributes(ByteCursor& cursor, Abbreviation& abbreviation);
  void add_steps(Abbreviation& abbreviation);
  void sort();

  DwarfEncoding encoding_;
  std::vector<Abbreviation> list_;
  std::vector<AttributeSpec> attributes_;
  std::vector<SkipStep> steps_;
  std::size_t parts_read_ = 0;
  std::size_t dense_ = 0;  // this many from the front have the codes 1, 2, 3...
};

}  // namespace ddprof
