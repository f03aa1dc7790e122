#include "symbol/dwarf/abbreviations.hpp"

#include <algorithm>
#include <limits>

namespace ddprof {

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
