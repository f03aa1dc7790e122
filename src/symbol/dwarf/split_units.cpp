#include "symbol/dwarf/split_units.hpp"

#include "symbol/dwarf/package_index.hpp"

namespace ddprof {

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
