#include "symbol/dwarf/attributes.hpp"

#include <algorithm>
#include <limits>

namespace ddprof {

namespace {

// DWARF 2 gave DW_FORM_ref_addr the size of an address (version 3, section 7.5.4, made it an offset).
std::uint8_t ref_addr_size(const DwarfEncoding& encoding) {
  return encoding.version <= 2 ? encoding.address_size : encoding.offset_size;
}

// LEB128 numbers of any meaning.
bool is_uleb_form(DwarfForm form) {
  switch (form) {
    case DwarfForm::udata:
    case DwarfForm::ref_udata:
    case DwarfForm::strx:
    case DwarfForm::addrx:
    case DwarfForm::loclistx:
    case DwarfForm::rnglistx:
    case DwarfForm::gnu_addr_index:
    case DwarfForm::gnu_str_index:
      return true;
    default:
      return false;
  }
}

std::uint64_t read_number(ByteCursor& cursor, int size) {
  switch (size) {
    case 0:
      return 1;  // DW_FORM_flag_present
    case 1:
      return cursor.u8();
    case 2:
      return cursor.u16();
    case 3:
      return cursor.u24();
    case 4:
      return cursor.u32();
    case 8:
      return cursor.u64();
    default:
      cursor.skip(static_cast<std::uint64_t>(size));
      return 0;
  }
}

void skip_block(ByteCursor& cursor, DwarfForm form) {
  switch (form) {
    case DwarfForm::block1:
      return cursor.skip(cursor.u8());
    case DwarfForm::block2:
      return cursor.skip(cursor.u16());
    case DwarfForm::block4:
      return cursor.skip(cursor.u32());
    case DwarfForm::block:
    case DwarfForm::exprloc:
      return cursor.skip(cursor.uleb());
    default:
      return cursor.fail();
  }
}

}  // namespace

int fixed_size(DwarfForm form, const DwarfEncoding& encoding) {
  switch (form) {
    case DwarfForm::flag_present:
    case DwarfForm::implicit_const:
      return 0;
    case DwarfForm::data1:
    case DwarfForm::flag:
    case DwarfForm::ref1:
    case DwarfForm::strx1:
    case DwarfForm::addrx1:
      return 1;
    case DwarfForm::data2:
    case DwarfForm::ref2:
    case DwarfForm::strx2:
    case DwarfForm::addrx2:
      return 2;
    case DwarfForm::strx3:
    case DwarfForm::addrx3:
      return 3;
    case DwarfForm::data4:
    case DwarfForm::ref4:
    case DwarfForm::ref_sup4:
    case DwarfForm::strx4:
    case DwarfForm::addrx4:
      return 4;
    case DwarfForm::data8:
    case DwarfForm::ref8:
    case DwarfForm::ref_sup8:
    case DwarfForm::ref_sig8:
      return 8;
    case DwarfForm::data16:
      return 16;
    case DwarfForm::addr:
      return encoding.address_size;
    case DwarfForm::ref_addr:
      return ref_addr_size(encoding);
    case DwarfForm::sec_offset:
    case DwarfForm::strp:
    case DwarfForm::line_strp:
    case DwarfForm::strp_sup:
    case DwarfForm::gnu_ref_alt:
    case DwarfForm::gnu_strp_alt:
      return encoding.offset_size;
    default:
      return -1;
  }
}

AttributeValue read_value(ByteCursor& cursor, DwarfForm form, const DwarfEncoding& encoding,
                          std::int64_t implicit) {
  if (form == DwarfForm::indirect) {
    form = DwarfForm{static_cast<std::uint16_t>(cursor.uleb())};
    // Neither of them says anything here, and the first would let bytes nest for ever.
    if (form == DwarfForm::indirect || form == DwarfForm::implicit_const) cursor.fail();
  }
  AttributeValue value{form, 0, {}};
  if (form == DwarfForm::implicit_const) {
    value.number = static_cast<std::uint64_t>(implicit);
  } else if (const int size = fixed_size(form, encoding); size >= 0) {
    value.number = read_number(cursor, size);
  } else if (is_uleb_form(form)) {
    value.number = cursor.uleb();
  } else if (form == DwarfForm::sdata) {
    value.number = static_cast<std::uint64_t>(cursor.sleb());
  } else if (form == DwarfForm::string) {
    value.text = cursor.string();
  } else {
    skip_block(cursor, form);
  }
  return value;
}

bool is_address_form(DwarfForm form) {
  switch (form) {
    case DwarfForm::addr:
    case DwarfForm::addrx:
    case DwarfForm::addrx1:
    case DwarfForm::addrx2:
    case DwarfForm::addrx3:
    case DwarfForm::addrx4:
    case DwarfForm::gnu_addr_index:
      return true;
    default:
      return false;
  }
}

namespace {

// A table takes about ten times the memory of its bytes: up to 16 MiB. Real ones have some hundred
// abbreviations and attributes, those of whole programs in one unit some ten thousand.
constexpr std::size_t kMaxParts = std::size_t{1} << 18U;

// Numbers past 16 bits are not in use: read as an unknown one.
std::uint16_t narrow_code(std::uint64_t value) {
  return static_cast<std::uint16_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint16_t>::max()));
}

EntryKind kind_of(DwarfTag tag) {
  switch (tag) {
    case DwarfTag::name_space:
    case DwarfTag::module:
      return EntryKind::scope;
    case DwarfTag::class_type:
    case DwarfTag::structure_type:
    case DwarfTag::union_type:
    case DwarfTag::interface_type:
      return EntryKind::type;
    case DwarfTag::subprogram:
    case DwarfTag::inlined_subroutine:
      return EntryKind::function;
    case DwarfTag::lexical_block:
    case DwarfTag::with_statement:
    case DwarfTag::try_block:
    case DwarfTag::catch_block:
      return EntryKind::block;
    default:
      return EntryKind::other;
  }
}

}  // namespace

AbbreviationTable AbbreviationTable::parse(std::span<const std::byte> section, std::uint64_t offset,
                                           const DwarfEncoding& encoding, DwarfProblem& problem,
                                           std::uint64_t only) {
  AbbreviationTable table;
  table.encoding_ = encoding;
  ByteCursor cursor(section, offset);
  while (true) {
    Abbreviation abbreviation;
    abbreviation.code = cursor.uleb();
    if (abbreviation.code == 0) break;
    abbreviation.tag = DwarfTag{narrow_code(cursor.uleb())};
    abbreviation.kind = kind_of(abbreviation.tag);
    abbreviation.has_children = cursor.u8() != 0;
    table.read_attributes(cursor, abbreviation);
    if (cursor.failed() || ++table.parts_read_ > kMaxParts) break;
    if (only == 0 || abbreviation.code == only) table.list_.push_back(abbreviation);
    if (abbreviation.code == only) break;
    if (only != 0) {
      table.attributes_.clear();
      table.steps_.clear();
    }
  }
  if (cursor.failed()) problem.note("abbreviations at {:#x}: they do not end", offset);
  if (table.parts_read_ > kMaxParts) problem.note("abbreviations at {:#x}: too many", offset);
  table.sort();
  return table;
}

void AbbreviationTable::read_attributes(ByteCursor& cursor, Abbreviation& abbreviation) {
  abbreviation.first_attribute = static_cast<std::uint32_t>(attributes_.size());
  while (++parts_read_ <= kMaxParts) {
    AttributeSpec spec;
    spec.attribute = DwarfAttribute{narrow_code(cursor.uleb())};
    spec.form = DwarfForm{narrow_code(cursor.uleb())};
    if (spec.form == DwarfForm::implicit_const) spec.implicit = cursor.sleb();
    if (spec.attribute == DwarfAttribute::none && spec.form == DwarfForm::none) break;
    abbreviation.has_sibling |= spec.attribute == DwarfAttribute::sibling;
    abbreviation.has_code |=
        spec.attribute == DwarfAttribute::low_pc || spec.attribute == DwarfAttribute::ranges;
    attributes_.push_back(spec);
  }
  abbreviation.attribute_count =
      static_cast<std::uint32_t>(attributes_.size() - abbreviation.first_attribute);
  add_steps(abbreviation);
}

void AbbreviationTable::add_steps(Abbreviation& abbreviation) {
  abbreviation.first_step = static_cast<std::uint32_t>(steps_.size());
  SkipStep step;
  for (const AttributeSpec& spec : attributes(abbreviation)) {
    const int size = fixed_size(spec.form, encoding_);
    if (size >= 0) {
      step.bytes += static_cast<std::uint32_t>(size);
      continue;
    }
    // An attribute without a form is no end of the steps, but nothing can be read after it.
    step.then = spec.form == DwarfForm::none ? DwarfForm{0xffff} : spec.form;
    steps_.push_back(step);
    step = {};
  }
  steps_.push_back(step);
}

void AbbreviationTable::sort() {
  const auto by_code = [](const Abbreviation& a, const Abbreviation& b) { return a.code < b.code; };
  if (!std::is_sorted(list_.begin(), list_.end(), by_code))
    std::stable_sort(list_.begin(), list_.end(), by_code);
  while (dense_ < list_.size() && list_[dense_].code == dense_ + 1) ++dense_;
}

const Abbreviation* AbbreviationTable::find_sparse(std::uint64_t code) const {
  const auto found = std::lower_bound(
      list_.begin(), list_.end(), code,
      [](const Abbreviation& abbreviation, std::uint64_t wanted) { return abbreviation.code < wanted; });
  return found != list_.end() && found->code == code ? &*found : nullptr;
}

void AbbreviationTable::skip_attributes(const Abbreviation& abbreviation, ByteCursor& cursor) const {
  for (const SkipStep* step = &steps_[abbreviation.first_step];; ++step) {
    cursor.skip(step->bytes);
    switch (step->then) {
      case DwarfForm::none:
        return;
      case DwarfForm::exprloc:
        cursor.skip(cursor.uleb());
        break;
      case DwarfForm::udata:
      case DwarfForm::sdata:
      case DwarfForm::strx:
      case DwarfForm::addrx:
        cursor.skip_leb();
        break;
      default:
        static_cast<void>(read_value(cursor, step->then, encoding_));
    }
  }
}

std::size_t AbbreviationTable::memory_bytes() const {
  return list_.capacity() * sizeof(Abbreviation) + attributes_.capacity() * sizeof(AttributeSpec) +
         steps_.capacity() * sizeof(SkipStep);
}

}  // namespace ddprof
