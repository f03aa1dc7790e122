#include "symbol/dwarf/dwarf_file.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// Units are visited once per batch; what is kept serves references from one to others.
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
