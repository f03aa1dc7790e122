#include "symbol/dwarf/dwarf_sections.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace ddprof {

namespace {

constexpr std::array<std::string_view, kDwarfSectionCount> kSectionNames = {
    "info", "abbrev",  "line",   "line_str", "str",     "str_offsets",
    "addr", "aranges", "ranges", "rnglists", "cu_index"};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The index of a package has no suffix of its own: only packages have one.
std::optional<std::size_t> slot_of(std::string_view name, DwarfSections::Kind kind) {
  if (!take_prefix(name, ".debug_") && !take_prefix(name, ".zdebug_")) return std::nullopt;
  const bool is_split = name.ends_with(".dwo");
  if (is_split) name.remove_suffix(4);
  if (name != "cu_index" && is_split != (kind == DwarfSections::Kind::split)) return std::nullopt;
  const auto* const found = std::find(kSectionNames.begin(), kSectionNames.end(), name);
  if (found == kSectionNames.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kSectionNames.begin());
}

}  // namespace

DwarfSections::DwarfSections(const ElfFile& file, Kind kind, DwarfProblem& problem, WorkBudget& budget)
    : file_(&file), problem_(&problem), budget_(&budget) {
  for (std::size_t i = 1; i < file.section_count(); ++i) {
    const auto section = file.section(i);
    const auto index = section ? slot_of(section->name, kind) : std::nullopt;
    if (!index || section->data.empty()) continue;
    Slot& slot = slots_[*index];
    if (!slot.header.name.empty()) continue;  // the first of a name counts, as for readelf
    slot.header = *section;
    slot.is_pending = section->is_compressed() || section->name.starts_with(".z");
    if (!slot.is_pending) slot.bytes = section->data;
  }
}

std::span<const std::byte> DwarfSections::get(DwarfSection section) {
  Slot& slot = slots_[static_cast<std::size_t>(section)];
  if (slot.is_pending) {
    slot.is_pending = false;
    auto inflated = file_->uncompressed(slot.header, budget_->bytes_left());
    if (inflated.ok()) {
      slot.inflated = std::move(inflated).value();
      budget_->take_bytes(slot.inflated.capacity());
    } else if (inflated.error().code == ErrorCode::exhausted) {
      problem_->note("{}: too large to read with --max-memory {}", inflated.error().message,
                     budget_->limits().mebibytes());
    } else {
      problem_->note("{}", inflated.error().message);
    }
    slot.bytes = slot.inflated;
  }
  return slot.bytes;
}

std::size_t DwarfSections::memory_bytes() const {
  std::size_t sum = 0;
  for (const Slot& slot : slots_) sum += slot.inflated.capacity();
  return sum;
}

}  // namespace ddprof
