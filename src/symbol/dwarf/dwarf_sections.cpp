#include "symbol/dwarf/dwarf_sections.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "elf/scratch.hpp"

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

std::uint64_t DwarfSections::uncompressed_bytes(const ElfFile& file) {
  std::uint64_t sum = 0;
  for (std::size_t i = 1; i < file.section_count(); ++i) {
    const auto section = file.section(i);
    if (section && slot_of(section->name, Kind::whole)) sum += ElfFile::uncompressed_bytes(*section);
  }
  return sum;
}

std::span<const std::byte> DwarfSections::get(DwarfSection section) {
  Slot& slot = slots_[static_cast<std::size_t>(section)];
  if (!slot.is_pending) return slot.bytes;
  slot.is_pending = false;
  if (auto read = unpack(slot); !read) problem_->note("{}", read.error().message);
  return slot.bytes;
}

Result<void> DwarfSections::unpack(Slot& slot) {
  Scratch* scratch = budget_->limits().scratch;
  auto inflated = file_->uncompressed(slot.header, budget_->bytes_left());
  if (inflated) {
    slot.inflated = *std::move(inflated);
    slot.bytes = slot.inflated;
    budget_->take_bytes(slot.inflated.capacity());
    return {};
  }
  if (inflated.error().code != ErrorCode::exhausted) return inflated.error();
  if (scratch == nullptr) {
    return make_error(ErrorCode::exhausted, "{}: too large to read with --max-memory {}",
                      inflated.error().message, budget_->limits().mebibytes());
  }
  slot.on_disk = TRY(file_->uncompressed(slot.header, *scratch));
  slot.bytes = slot.on_disk.bytes();
  return {};
}

void DwarfSections::drop_pages() const {
  for (const Slot& slot : slots_) slot.on_disk.drop_pages();
}

std::size_t DwarfSections::memory_bytes() const {
  std::size_t sum = 0;
  for (const Slot& slot : slots_) sum += slot.inflated.capacity();
  return sum;
}

}  // namespace ddprof
