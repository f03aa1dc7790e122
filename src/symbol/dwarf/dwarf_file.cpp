#include "symbol/dwarf/dwarf_file.hpp"

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

namespace {

// Units are visited once per batch; what is cached serves references from one to others.
constexpr std::size_t kMaxKeptUnits = 1024;
constexpr std::size_t kMaxTableBytes = std::size_t{4} << 20U;
constexpr std::uint64_t kWorkPerUnit = 64;  // most often a page of its own
constexpr std::uint64_t kWorkPerPart = 8;   // of a table of abbreviations: what it takes in memory is written

}  // namespace

DwarfFile::DwarfFile(const ElfFile& file, DwarfSections::Kind kind, DwarfProblem& problem, WorkBudget& budget)
    : sections_(file, kind, problem, budget), problem_(&problem), budget_(&budget) {
  budget.add_file(file.image().size());
}

std::span<const std::uint64_t> DwarfFile::units() {
  if (units_are_read_) return units_;
  units_are_read_ = true;
  const auto info = section(DwarfSection::info);
  const std::size_t max_units = budget_->limits().count(sizeof(std::uint64_t), 4);
  for (std::uint64_t offset = 0; offset < info.size();) {
    if (units_.size() >= max_units || !budget_->spend(kWorkPerUnit)) {
      problem_->note("unit at {:#x}: it and the {} before it are too many to read with --max-memory {}",
                     offset, units_.size(), budget_->limits().mebibytes());
      break;
    }
    const auto end = unit_end(info, offset);
    if (!end) {
      problem_->note("unit at {:#x}: it ends outside of .debug_info", offset);
      break;
    }
    constexpr std::uint64_t kLengthBytes = 4;
    if (*end - offset > kLengthBytes) units_.push_back(offset);  // zeros between units are none
    offset = *end;
  }
  return units_;
}

std::shared_ptr<const AbbreviationTable> DwarfFile::abbreviations(std::uint64_t offset,
                                                                  const DwarfEncoding& encoding) {
  const TableKey key(offset, encoding);
  if (const auto found = tables_.find(key); found != tables_.end()) return found->second;
  auto table = std::make_shared<const AbbreviationTable>(
      AbbreviationTable::parse(section(DwarfSection::abbrev), offset, encoding, *problem_));
  budget_->spend(table->parts_read() * kWorkPerPart);
  if (table_bytes_ > kMaxTableBytes) {
    tables_.clear();
    read_units_.clear();  // they hold tables too
    table_bytes_ = 0;
  }
  table_bytes_ += table->memory_bytes();
  tables_.emplace(key, table);
  return table;
}

std::shared_ptr<const Unit> DwarfFile::unit_at(std::uint64_t offset) {
  if (const auto found = read_units_.find(offset); found != read_units_.end()) return found->second;
  if (budget_->is_spent()) return nullptr;
  const auto header = read_unit_header(section(DwarfSection::info), offset);
  if (!header) {
    problem_->note("unit at {:#x}: its header is not one of DWARF 2 to 5", offset);
    return nullptr;
  }
  auto table = abbreviations(header->abbreviations, header->encoding);
  auto unit = std::make_shared<const Unit>(*this, *header, std::move(table));
  if (read_units_.size() >= kMaxKeptUnits) read_units_.clear();
  read_units_.emplace(offset, unit);
  return unit;
}

std::shared_ptr<const Unit> DwarfFile::unit_around(std::uint64_t entry) {
  const auto all = units();
  const auto after = std::upper_bound(all.begin(), all.end(), entry);
  if (after == all.begin()) return nullptr;
  auto unit = unit_at(*(after - 1));
  return unit != nullptr && unit->contains(entry) ? unit : nullptr;
}

std::size_t DwarfFile::memory_bytes() const {
  return sections_.memory_bytes() + units_.capacity() * sizeof(std::uint64_t) + table_bytes_ +
         read_units_.size() * sizeof(Unit);
}

}  // namespace ddprof
