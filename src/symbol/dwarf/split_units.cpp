#include "symbol/dwarf/split_units.hpp"

#include "elf/byte_cursor.hpp"

namespace ddprof {

namespace {

// Numbers of the columns. Those of version 2 differ from version 5 on (DWARF 5, section 7.3.5.3) but for
// these.
enum class PackageColumn : std::uint32_t { info = 1, abbrev = 3, str_offsets = 6, rnglists = 8 };

struct PackageHeader {
  std::uint32_t version = 0;
  std::uint32_t columns = 0;
  std::uint32_t units = 0;
  std::uint32_t slots = 0;
};
constexpr std::uint64_t kPackageHeaderBytes = 16;
constexpr std::uint64_t kWorkPerSlot = 16;  // two misses of the cache

std::optional<PackageHeader> read_package_header(std::span<const std::byte> index) {
  auto header = load<PackageHeader>(index, 0);
  if (!header) return std::nullopt;
  // Version 5 has a version of two bytes and two bytes of padding.
  const std::uint32_t version = header->version & 0xffffU;
  if (header->version != 2 && version != 5) return std::nullopt;
  const bool is_power_of_2 = header->slots != 0 && (header->slots & (header->slots - 1)) == 0;
  if (!is_power_of_2 || header->slots > index.size() / 12) return std::nullopt;
  if (header->columns == 0 || header->columns > 16 || header->units > header->slots) return std::nullopt;
  header->version = version;
  return header;
}

// The row of an id in the table behind the hash table, counted from 1; 0 when it has none.
std::uint32_t find_row(std::span<const std::byte> index, const PackageHeader& header, std::uint64_t id,
                       WorkBudget& budget) {
  const std::uint32_t mask = header.slots - 1;
  std::uint64_t slot = id & mask;
  const std::uint64_t step = ((id >> 32U) & mask) | 1U;
  const std::uint64_t rows = kPackageHeaderBytes + std::uint64_t{header.slots} * 8;
  for (std::uint32_t tries = 0; tries < header.slots && budget.spend(kWorkPerSlot);
       ++tries, slot = (slot + step) & mask) {
    const std::uint32_t row = load<std::uint32_t>(index, rows + slot * 4).value_or(0);
    if (row == 0) return 0;
    if (load<std::uint64_t>(index, kPackageHeaderBytes + slot * 8) == id) return row;
  }
  return 0;
}

}  // namespace

std::optional<PackageEntry> find_in_package_index(std::span<const std::byte> index, std::uint64_t dwo_id,
                                                  WorkBudget& budget) {
  const auto header = read_package_header(index);
  if (!header) return std::nullopt;
  const std::uint32_t row = find_row(index, *header, dwo_id, budget);
  if (row == 0 || row > header->units) return std::nullopt;
  const std::uint64_t columns = kPackageHeaderBytes + std::uint64_t{header->slots} * 12;
  const std::uint64_t offsets = columns + std::uint64_t{row} * header->columns * 4;
  PackageEntry entry;
  for (std::uint64_t i = 0; i < header->columns; ++i) {
    const auto column = load<std::uint32_t>(index, columns + i * 4);
    const auto offset = load<std::uint32_t>(index, offsets + i * 4);
    if (!column || !offset) return std::nullopt;
    switch (PackageColumn{*column}) {
      case PackageColumn::info:
        entry.info = *offset;
        break;
      case PackageColumn::abbrev:
        entry.abbreviations = *offset;
        break;
      case PackageColumn::str_offsets:
        entry.str_offsets = *offset;
        break;
      case PackageColumn::rnglists:
        if (header->version == 5) entry.rnglists = *offset;
        break;
    }
  }
  return entry;
}

std::shared_ptr<const Unit> SplitUnits::find(const Unit& skeleton) {
  if (!skeleton.root().dwo_id || !skeleton.root().dwo_name.exists()) return nullptr;
  if (auto unit = find_in_package(skeleton)) return unit;
  if (auto unit = find_in_file(skeleton)) return unit;
  problem_.note("unit at {:#x}: {} is not to be found", skeleton.header().offset,
                skeleton.string(skeleton.root().dwo_name));
  return nullptr;
}

DwarfFile* SplitUnits::package() {
  if (!has_asked_for_package_) {
    has_asked_for_package_ = true;
    if (const ElfFile* file = others_.package())
      package_.emplace(*file, DwarfSections::Kind::split, problem_, budget_);
  }
  return package_ ? &*package_ : nullptr;
}

std::shared_ptr<const Unit> SplitUnits::find_in_package(const Unit& skeleton) {
  DwarfFile* file = package();
  if (file == nullptr) return nullptr;
  const auto entry =
      find_in_package_index(file->section(DwarfSection::cu_index), *skeleton.root().dwo_id, budget_);
  if (!entry) return nullptr;
  const auto header = read_unit_header(file->section(DwarfSection::info), entry->info);
  if (!header) {
    problem_.note("package: the unit at {:#x} cannot be read", entry->info);
    return nullptr;
  }
  auto table = file->abbreviations(entry->abbreviations + header->abbreviations, header->encoding);
  const UnitBases bases{entry->str_offsets, entry->rnglists};
  auto unit = std::make_shared<Unit>(*file, *header, std::move(table), bases);
  unit->attach_to(skeleton);
  return unit;
}

std::shared_ptr<const Unit> SplitUnits::find_in_file(const Unit& skeleton) {
  const Unit::Root& root = skeleton.root();
  const ElfFile* elf = others_.split_unit(skeleton.string(root.comp_dir), skeleton.string(root.dwo_name));
  if (elf == nullptr) return nullptr;
  file_.emplace(*elf, DwarfSections::Kind::split, problem_, budget_);
  for (const std::uint64_t offset : file_->units()) {
    if (!budget_.spend(1)) return nullptr;
    const auto header = read_unit_header(file_->section(DwarfSection::info), offset);
    if (!header || header->type == DwarfUnitType::split_type) continue;
    auto table = file_->abbreviations(header->abbreviations, header->encoding);
    auto unit = std::make_shared<Unit>(*file_, *header, std::move(table));
    if (unit->root().dwo_id != root.dwo_id) continue;
    unit->attach_to(skeleton);
    return unit;
  }
  problem_.note("unit at {:#x}: {} is of another build", skeleton.header().offset,
                skeleton.string(root.dwo_name));
  return nullptr;
}

std::size_t SplitUnits::memory_bytes() const {
  return (package_ ? package_->memory_bytes() : 0) + (file_ ? file_->memory_bytes() : 0);
}

}  // namespace ddprof
