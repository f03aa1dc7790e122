#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "elf/elf_file.hpp"
#include "elf/work_budget.hpp"
#include "symbol/dwarf/dwarf_problem.hpp"

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

// The debug sections of one file. Compressed ones are inflated when they are first asked for, and kept.
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

}  // namespace ddprof
