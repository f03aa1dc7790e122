#include "symbol/dwarf/unit_index.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <queue>
#include <utility>

#include "symbol/dwarf/address_ranges.hpp"
#include "symbol/dwarf/line_program.hpp"

namespace ddprof {

namespace {

constexpr std::uint64_t kWorkPerSet = 16;
constexpr std::uint64_t kWorkPerRootPart = 4;  // of a table of abbreviations

}  // namespace

class UnitIndex::Builder {
 public:
  Builder(DwarfFile& file, const CodeBounds& bounds)
      : file_(file),
        bounds_(bounds),
        max_ranges_(file.budget().limits().count(sizeof(Range), 2)),
        has_ranges_(file.units().size()) {}

  void read_aranges();
  void read_roots();
  std::vector<Range> finish() &&;

 private:
  void read_arange_set(ByteCursor& cursor, const DwarfEncoding& encoding, std::uint64_t end);
  void read_root(std::uint32_t number);
  void read_unit(const Unit& unit, std::uint32_t number);
  void read_lines(const Unit& unit, std::uint32_t number);
  void add(std::uint32_t unit, std::uint64_t begin, std::uint64_t end);
  static void append(std::vector<Range>& ranges, std::uint32_t unit, std::uint64_t begin, std::uint64_t end);

  DwarfFile& file_;
  const CodeBounds& bounds_;
  std::size_t
      max_ranges_;  // two millions of --max-memory 256: functions in sections of their own have one each
  std::vector<bool> has_ranges_;
  std::vector<Range> ranges_;
};

// Adds a range, or makes the last one longer.
void UnitIndex::Builder::append(std::vector<Range>& ranges, std::uint32_t unit, std::uint64_t begin,
                                std::uint64_t end) {
  constexpr std::uint64_t kMaxSize = std::numeric_limits<std::uint32_t>::max();
  if (!ranges.empty() && ranges.back().unit == unit && ranges.back().end() == begin &&
      end - ranges.back().begin <= kMaxSize) {
    ranges.back().size = static_cast<std::uint32_t>(end - ranges.back().begin);
    return;
  }
  ranges.push_back({begin, static_cast<std::uint32_t>(std::min(end - begin, kMaxSize)), unit});
}

void UnitIndex::Builder::add(std::uint32_t unit, std::uint64_t begin, std::uint64_t end) {
  has_ranges_[unit] = true;
  if (!bounds_.contain(begin, end)) return;
  if (ranges_.size() < max_ranges_)
    append(ranges_, unit, begin, end);
  else
    file_.problem().note("unit at {:#x}: too many ranges before it", file_.units()[unit]);
}

void UnitIndex::Builder::read_aranges() {
  ByteCursor cursor(file_.section(DwarfSection::aranges));
  while (!cursor.at_end() && file_.budget().spend(kWorkPerSet)) {
    DwarfEncoding encoding;
    const std::uint64_t length = read_initial_length(cursor, encoding);
    const std::uint64_t end = cursor.offset() + length;
    if (cursor.failed() || length > cursor.left()) {
      file_.problem().note(".debug_aranges: a set ends outside of it");
      return;
    }
    read_arange_set(cursor, encoding, end);
    cursor.seek(end);
  }
}

void UnitIndex::Builder::read_arange_set(ByteCursor& cursor, const DwarfEncoding& encoding,
                                         std::uint64_t end) {
  const std::uint64_t start = cursor.offset() - (encoding.offset_size == 8 ? 12U : 4U);
  cursor.skip(2);  // version: 2 in all of DWARF 2 to 5
  const std::uint64_t offset = cursor.word(encoding.offset_size);
  const std::uint8_t size = cursor.u8();
  const std::uint8_t segment_size = cursor.u8();
  const auto units = file_.units();
  const auto unit = std::lower_bound(units.begin(), units.end(), offset);
  if (cursor.failed() || unit == units.end() || *unit != offset || (size != 8 && size != 4) ||
      segment_size != 0) {
    file_.problem().note(".debug_aranges: the set at {:#x} is of no unit", start);
    return;
  }
  // Pairs are aligned to their own size, counted from the start of the set.
  const std::uint64_t pair = std::uint64_t{2} * size;
  cursor.skip((pair - (cursor.offset() - start) % pair) % pair);
  const auto number = static_cast<std::uint32_t>(unit - units.begin());
  while (cursor.offset() < end && file_.budget().spend(1)) {
    const std::uint64_t begin = cursor.word(size);
    const std::uint64_t length = cursor.word(size);
    if (cursor.failed() || (begin == 0 && length == 0)) return;
    add(number, begin, begin + length);
  }
}

void UnitIndex::Builder::read_roots() {
  for (std::uint32_t unit = 0; unit < has_ranges_.size(); ++unit) {
    if (has_ranges_[unit]) continue;
    if (file_.budget().is_spent()) {
      file_.problem().note("unit at {:#x}: what comes before it is more work than it is worth",
                           file_.units()[unit]);
      return;
    }
    read_root(unit);
  }
}

// Only the abbreviation of the root entry is read: there may be tens of thousands of units.
void UnitIndex::Builder::read_root(std::uint32_t number) {
  const auto info = file_.section(DwarfSection::info);
  const auto header = read_unit_header(info, file_.units()[number]);
  if (!header) {
    file_.problem().note("unit at {:#x}: its header is not one of DWARF 2 to 5", file_.units()[number]);
    return;
  }
  if (header->type == DwarfUnitType::type || header->type == DwarfUnitType::partial) return;
  const std::uint64_t code = ByteCursor(info.first(header->end), header->root).uleb();
  if (code == 0) return;
  auto table = std::make_shared<const AbbreviationTable>(AbbreviationTable::parse(
      file_.section(DwarfSection::abbrev), header->abbreviations, header->encoding, file_.problem(), code));
  file_.budget().spend(table->parts_read() * kWorkPerRootPart);
  read_unit(Unit(file_, *header, std::move(table)), number);
}

void UnitIndex::Builder::read_unit(const Unit& unit, std::uint32_t number) {
  const Unit::Root& root = unit.root();
  // What dwz moved out of other units has no code of its own. Before version 5 only the tag says so.
  if (root.tag == DwarfTag::partial_unit) return;
  if (root.ranges.exists()) {
    RangeList list(unit, root.ranges);
    for (AddressRange range; list.next(range);) add(number, range.begin, range.end);
    file_.budget().spend(list.entries());
  } else if (root.low_pc.exists() && root.high_pc.exists()) {
    const AddressRange range = plain_range(unit, root.low_pc, root.high_pc);
    add(number, range.begin, range.end);
  } else if (root.stmt_list) {
    read_lines(unit, number);
  }
}

void UnitIndex::Builder::read_lines(const Unit& unit, std::uint32_t number) {
  const auto program = LineProgram::parse(unit);
  if (!program) return;
  if (!file_.budget().spend(program->instructions().size())) return;
  LineRows rows(*program);
  bool is_inside = false;
  std::uint64_t begin = 0;
  while (const LineRow* row = rows.next()) {
    if (!is_inside) begin = row->address;
    is_inside = !row->ends_sequence;
    if (row->ends_sequence) add(number, begin, row->address);
  }
}

// Several units may claim the same code: each has a copy of a template's function, the linker left one, and
// lets all of them point to it. The first unit wins.
std::vector<UnitIndex::Range> UnitIndex::Builder::finish() && {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const auto later_unit = [](const Range& a, const Range& b) { return a.unit > b.unit; };
  std::priority_queue<Range, std::vector<Range>, decltype(later_unit)> open(later_unit);
  std::vector<Range> disjoint;
  std::uint64_t at = 0;
  for (auto next = ranges_.begin(); next != ranges_.end() || !open.empty();) {
    if (open.empty()) at = next->begin;
    for (; next != ranges_.end() && next->begin <= at; ++next) open.push(*next);
    const Range first = open.top();
    if (first.end() <= at) {
      open.pop();
      continue;
    }
    const std::uint64_t end = next != ranges_.end() ? std::min(first.end(), next->begin) : first.end();
    append(disjoint, first.unit, at, end);
    at = end;
  }
  disjoint.shrink_to_fit();
  return disjoint;
}

UnitIndex UnitIndex::build(DwarfFile& file, const CodeBounds& bounds) {
  Builder builder(file, bounds);
  builder.read_aranges();
  builder.read_roots();
  UnitIndex index;
  index.ranges_ = std::move(builder).finish();
  return index;
}

std::optional<std::uint32_t> UnitIndex::find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t wanted, const Range& range) { return wanted < range.begin; });
  if (after == ranges_.begin() || address >= (after - 1)->end()) return std::nullopt;
  return (after - 1)->unit;
}

}  // namespace ddprof
