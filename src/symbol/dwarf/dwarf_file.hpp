#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "elf/elf_file.hpp"
#include "elf/read_limits.hpp"
#include "symbol/dwarf/attributes.hpp"
#include "symbol/dwarf/dwarf_problem.hpp"
#include "symbol/dwarf/unit.hpp"

namespace ddprof {

enum class DwarfSection : std::uint8_t {
  info,
  abbrev,
  line,
  line_str,
  str,
  str_offsets,
  addr,
  aranges,
  ranges,
  rnglists,
  cu_index,
};
inline constexpr std::size_t kDwarfSectionCount = 11;

// The debug sections of one file. Compressed ones are inflated when they are first asked for, and cached.
class DwarfSections {
 public:
  enum class Kind { whole, split };  // split: the sections of a .dwo or .dwp, whose names end in .dwo
  DwarfSections(const ElfFile& file, Kind kind, DwarfProblem& problem, WorkBudget& budget);
  ~DwarfSections() { budget_->give_back_bytes(memory_bytes()); }
  DwarfSections(const DwarfSections&) = delete;
  DwarfSections& operator=(const DwarfSections&) = delete;

  // What all compressed ones would be, unpacked.
  static std::uint64_t uncompressed_bytes(const ElfFile& file);

  // Empty when the file has no such section, or it is too large when it is unpacked.
  [[nodiscard]] std::span<const std::byte> get(DwarfSection section);
  [[nodiscard]] std::size_t memory_bytes() const;
  // Gives back pages of what was unpacked onto a disk.
  void drop_pages() const;

 private:
  struct Slot {
    ElfSection header;
    std::vector<std::byte> inflated;
    MappedRegion on_disk;  // instead, where that would not fit
    std::span<const std::byte> bytes;
    bool is_pending = false;  // compressed, not yet asked for
  };

  Result<void> unpack(Slot& slot);

  const ElfFile* file_;
  DwarfProblem* problem_;
  WorkBudget* budget_;
  std::array<Slot, kDwarfSectionCount> slots_;
};

// One file with debug information: its sections, where its units are, and the units that were read last.
class DwarfFile {
 public:
  DwarfFile(const ElfFile& file, DwarfSections::Kind kind, DwarfProblem& problem, WorkBudget& budget);

  [[nodiscard]] std::span<const std::byte> section(DwarfSection section) { return sections_.get(section); }
  [[nodiscard]] DwarfProblem& problem() { return *problem_; }
  [[nodiscard]] WorkBudget& budget() { return *budget_; }
  // What dwz moved elsewhere; null when there is none.
  [[nodiscard]] DwarfFile* supplementary() const { return supplementary_; }
  void set_supplementary(DwarfFile* file) { supplementary_ = file; }

  // Offsets of all units in .debug_info, ascending.
  [[nodiscard]] std::span<const std::uint64_t> units();
  // The unit at an offset of units(), or the one around an entry; null when it cannot be read.
  std::shared_ptr<const Unit> unit_at(std::uint64_t offset);
  std::shared_ptr<const Unit> unit_around(std::uint64_t entry);

  std::shared_ptr<const AbbreviationTable> abbreviations(std::uint64_t offset, const DwarfEncoding& encoding);
  [[nodiscard]] std::size_t memory_bytes() const;
  void drop_pages() const { sections_.drop_pages(); }

 private:
  using TableKey = std::pair<std::uint64_t, DwarfEncoding>;

  DwarfSections sections_;
  DwarfProblem* problem_;
  WorkBudget* budget_;
  DwarfFile* supplementary_ = nullptr;
  bool units_are_read_ = false;
  std::vector<std::uint64_t> units_;
  std::map<std::uint64_t, std::shared_ptr<const Unit>> read_units_;
  std::map<TableKey, std::shared_ptr<const AbbreviationTable>> tables_;
  std::size_t table_bytes_ = 0;
};

}  // namespace ddprof
