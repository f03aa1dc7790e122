#include "symbol/dwarf/function_walk.hpp"

#include <algorithm>

#include "symbol/dwarf/dwarf_file.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxDepth = 4096;
constexpr std::size_t kMaxNodes = std::size_t{1} << 18U;  // 10 MiB: those at the addresses that are asked for

}  // namespace

FunctionWalk::FunctionWalk(const Unit& unit, std::span<const std::uint64_t> addresses,
                           const CodeBounds& bounds)
    : unit_(unit),
      table_(unit.abbreviations()),
      addresses_(addresses),
      bounds_(bounds),
      innermost_(addresses.size(), FunctionNode::kNone) {}

void FunctionWalk::run() {
  if (addresses_.empty()) return;
  walk(Pass::quick);
  if (std::find(innermost_.begin(), innermost_.end(), FunctionNode::kNone) != innermost_.end())
    walk(Pass::thorough);
}

void FunctionWalk::walk(Pass pass) {
  WorkBudget& budget = unit_.file().budget();
  if (!budget.spend(unit_.header().end - unit_.header().offset)) return;
  ByteCursor cursor = unit_.cursor_at(unit_.root().first_child);
  around_.assign(1, FunctionNode::kNone);
  while (!cursor.at_end() && !around_.empty() && !budget.is_spent()) {
    const std::uint64_t entry = cursor.offset();
    const std::uint64_t code = cursor.uleb();
    if (code == 0) {
      around_.pop_back();
      continue;
    }
    const Abbreviation* abbreviation = table_.find(code);
    if (abbreviation == nullptr) {
      unit_.file().problem().note("unit at {:#x}: abbreviation {} is not defined", unit_.header().offset,
                                  code);
      return;
    }
    if (!visit(cursor, entry, *abbreviation, pass)) {
      unit_.file().problem().note("unit at {:#x}: the entry at {:#x} cannot be read", unit_.header().offset,
                                  entry);
      return;
    }
  }
  if (budget.is_spent())
    unit_.file().problem().note("unit at {:#x}: more work than it is worth", unit_.header().offset);
}

bool FunctionWalk::visit(ByteCursor& cursor, std::uint64_t entry, const Abbreviation& abbreviation,
                         Pass pass) {
  const bool is_function = abbreviation.kind == EntryKind::function;
  const bool is_open = pass == Pass::thorough || abbreviation.kind == EntryKind::scope ||
                       abbreviation.kind == EntryKind::block;
  if (is_function && abbreviation.has_code) {
    enter_function(cursor, entry, abbreviation, pass);
  } else if (is_open) {
    table_.skip_attributes(abbreviation, cursor);
    if (abbreviation.has_children) around_.push_back(around_.back());
  } else {
    skip_entry(cursor, abbreviation);
  }
  return !cursor.failed() && around_.size() < kMaxDepth;
}

void FunctionWalk::enter_function(ByteCursor& cursor, std::uint64_t entry, const Abbreviation& abbreviation,
                                  Pass pass) {
  Function function = read_function(cursor, abbreviation);
  if (cursor.failed()) return;
  function.node.entry = entry;
  const bool is_inlined = abbreviation.tag == DwarfTag::inlined_subroutine;
  if (is_inlined) function.node.parent = around_.back();
  const bool covers = cover(function, is_inlined);
  if (!abbreviation.has_children) return;
  if (covers)
    around_.push_back(static_cast<std::uint32_t>(nodes_.size() - 1));
  else if (pass == Pass::thorough)
    around_.push_back(around_.back());
  else
    skip_children(cursor, function.sibling);
}

FunctionWalk::Function FunctionWalk::read_function(ByteCursor& cursor,
                                                   const Abbreviation& abbreviation) const {
  Function function;
  for (const AttributeSpec& spec : table_.attributes(abbreviation)) {
    const AttributeValue value = read_value(cursor, spec.form, unit_.encoding(), spec.implicit);
    switch (spec.attribute) {
      case DwarfAttribute::low_pc:
        function.low_pc = value;
        break;
      case DwarfAttribute::high_pc:
        function.high_pc = value;
        break;
      case DwarfAttribute::ranges:
        function.ranges = value;
        break;
      case DwarfAttribute::call_file:
        function.node.call_file = value.number;
        break;
      case DwarfAttribute::call_line:
        function.node.call_line = static_cast<std::uint32_t>(value.number);
        break;
      case DwarfAttribute::call_column:
        function.node.call_column = static_cast<std::uint32_t>(value.number);
        break;
      case DwarfAttribute::sibling:
        if (const auto reference = unit_.reference(value)) function.sibling = reference->offset;
        break;
      default:
        break;
    }
  }
  return function;
}

// Adds a node when the function covers an address. What comes later is further inside, and takes its
// addresses over.
bool FunctionWalk::cover(const Function& function, bool is_inlined) {
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  if (node >= kMaxNodes) {
    unit_.file().problem().note("unit at {:#x}: too many calls", unit_.header().offset);
    return false;
  }
  bool covers = false;
  if (function.ranges.exists()) {
    RangeList list(unit_, function.ranges);
    for (AddressRange range; list.next(range) && !unit_.file().budget().is_spent();)
      covers |= cover(range, node, is_inlined);
    unit_.file().budget().spend(list.entries());
  } else {
    covers = cover(plain_range(unit_, function.low_pc, function.high_pc), node, is_inlined);
  }
  if (covers) nodes_.push_back(function.node);
  return covers;
}

// DWARF 2 tells the cold part of a function as a function of its own, after the calls that were inlined
// there.
bool FunctionWalk::takes_over(std::uint32_t current, bool is_inlined) const {
  if (is_inlined || current == FunctionNode::kNone) return true;
  return std::find(around_.begin(), around_.end(), current) != around_.end();
}

bool FunctionWalk::cover(const AddressRange& range, std::uint32_t node, bool is_inlined) {
  if (range.end <= addresses_.front() || range.begin > addresses_.back()) return false;
  if (!bounds_.contain(range.begin, range.end)) return false;
  const auto first = std::lower_bound(addresses_.begin(), addresses_.end(), range.begin);
  const auto last = std::lower_bound(first, addresses_.end(), range.end);
  const auto at = static_cast<std::size_t>(first - addresses_.begin());
  const auto count = static_cast<std::size_t>(last - first);
  if (count == 0 || !unit_.file().budget().spend(count * (is_inlined ? 1 : around_.size()))) return false;
  for (std::uint32_t& current : std::span(innermost_).subspan(at, count)) {
    if (takes_over(current, is_inlined)) current = node;
  }
  return true;
}

void FunctionWalk::skip_entry(ByteCursor& cursor, const Abbreviation& abbreviation) {
  if (!abbreviation.has_children) return table_.skip_attributes(abbreviation, cursor);
  if (!abbreviation.has_sibling) {
    table_.skip_attributes(abbreviation, cursor);
    return skip_children(cursor, 0);
  }
  std::uint64_t sibling = 0;
  for (const AttributeSpec& spec : table_.attributes(abbreviation)) {
    const AttributeValue value = read_value(cursor, spec.form, unit_.encoding(), spec.implicit);
    if (spec.attribute != DwarfAttribute::sibling) continue;
    if (const auto reference = unit_.reference(value)) sibling = reference->offset;
  }
  skip_children(cursor, sibling);
}

void FunctionWalk::skip_children(ByteCursor& cursor, std::uint64_t sibling) {
  if (sibling > cursor.offset()) return cursor.seek(sibling);
  for (std::size_t depth = 1; depth != 0 && !cursor.at_end();) {
    const std::uint64_t code = cursor.uleb();
    if (code == 0) {
      --depth;
      continue;
    }
    const Abbreviation* abbreviation = table_.find(code);
    if (abbreviation == nullptr) return cursor.fail();
    table_.skip_attributes(*abbreviation, cursor);
    if (abbreviation->has_children) ++depth;
  }
}

}  // namespace ddprof
