#include "symbol/dwarf/address_ranges.hpp"

#include <elf.h>

#include <algorithm>
#include <limits>

namespace ddprof {

namespace {

class BoundsOfParts {
 public:
  void add(std::uint64_t address, std::uint64_t size) {
    if (size == 0 || address + size < address) return;
    bounds_.begin = std::min(bounds_.begin, address);
    bounds_.end = std::max(bounds_.end, address + size);
  }
  [[nodiscard]] bool empty() const { return bounds_.end == 0; }
  [[nodiscard]] CodeBounds bounds() const { return bounds_; }

 private:
  CodeBounds bounds_{std::numeric_limits<std::uint64_t>::max(), 0};
};

}  // namespace

// Sections say it best, and a separate debug file keeps their headers. The first executable segment may begin
// at 0, with the ELF header.
CodeBounds CodeBounds::of(const ElfFile& file) {
  BoundsOfParts parts;
  for (std::size_t i = 1; i < file.section_count(); ++i) {
    const auto section = file.section(i);
    if (section && (section->flags & SHF_EXECINSTR) != 0) parts.add(section->vaddr, section->size);
  }
  if (!parts.empty()) return parts.bounds();
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0) parts.add(segment.vaddr, segment.memsz);
  }
  if (parts.empty()) return {};
  CodeBounds bounds = parts.bounds();
  bounds.begin = std::max<std::uint64_t>(bounds.begin, 1);
  return bounds;
}

namespace {

// Kinds of entries in .debug_rnglists (DWARF 5, section 7.25).
enum class RangeEntry : std::uint8_t {
  end_of_list = 0,
  base_addressx = 1,
  startx_endx = 2,
  startx_length = 3,
  offset_pair = 4,
  base_address = 5,
  start_end = 6,
  start_length = 7,
};

// Of one list: a unit with all functions of a browser, each in a section of its own.
constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 22U;

}  // namespace

RangeList::RangeList(const Unit& unit, const AttributeValue& value)
    : unit_(&unit), cursor_(unit.range_section()), base_(unit.base_address()) {
  const auto offset = unit.range_list(value);
  if (offset)
    cursor_.seek(*offset);
  else
    cursor_.fail();
}

bool RangeList::next(AddressRange& range) {
  return unit_->encoding().version >= 5 ? next_new(range) : next_old(range);
}

bool RangeList::next_old(AddressRange& range) {
  const std::uint8_t size = unit_->encoding().address_size;
  const std::uint64_t base_marker =
      size == 8 ? std::numeric_limits<std::uint64_t>::max() : std::numeric_limits<std::uint32_t>::max();
  while (true) {
    const std::uint64_t begin = cursor_.word(size);
    const std::uint64_t end = cursor_.word(size);
    if (++entries_ > kMaxEntries || cursor_.failed() || (begin == 0 && end == 0)) return false;
    if (begin == base_marker) {
      base_ = end;
    } else if (begin < end) {
      range = {base_ + begin, base_ + end};
      return true;
    }
  }
}

// An index that leads nowhere gives an address that is outside of all code.
std::uint64_t RangeList::indexed() { return unit_->indexed_address(cursor_.uleb()).value_or(0); }

bool RangeList::next_new(AddressRange& range) {
  const std::uint8_t size = unit_->encoding().address_size;
  while (true) {
    range = {};
    if (++entries_ > kMaxEntries) return false;
    switch (RangeEntry{cursor_.u8()}) {
      case RangeEntry::base_addressx:
        base_ = indexed();
        break;
      case RangeEntry::startx_endx:
        range.begin = indexed();
        range.end = indexed();
        break;
      case RangeEntry::startx_length:
        range.begin = indexed();
        range.end = range.begin + cursor_.uleb();
        break;
      case RangeEntry::offset_pair:
        range.begin = base_ + cursor_.uleb();
        range.end = base_ + cursor_.uleb();
        break;
      case RangeEntry::base_address:
        base_ = cursor_.word(size);
        break;
      case RangeEntry::start_end:
        range.begin = cursor_.word(size);
        range.end = cursor_.word(size);
        break;
      case RangeEntry::start_length:
        range.begin = cursor_.word(size);
        range.end = range.begin + cursor_.uleb();
        break;
      default:  // the end, and unknown kinds
        return false;
    }
    if (cursor_.failed()) return false;
    if (range.begin < range.end) return true;
  }
}

AddressRange plain_range(const Unit& unit, const AttributeValue& low_pc, const AttributeValue& high_pc) {
  const auto low = unit.address(low_pc);
  if (!low || !high_pc.exists()) return {};
  if (is_address_form(high_pc.form)) return {*low, unit.address(high_pc).value_or(0)};
  return {*low, *low + high_pc.number};
}

}  // namespace ddprof
