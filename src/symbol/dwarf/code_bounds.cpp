#include "symbol/dwarf/code_bounds.hpp"

#include <elf.h>

#include <algorithm>

namespace ddprof {

namespace {

class BoundsOfParts {
 public:
  void add(std::uint64_t address, std::uint64_t size) {
    if (size == 0 || address + size < address) return;
    bounds_.begin = std::min(bounds_.begin, address);
    bounds_.end = std::max(bounds_.end, address + size);
  }
  [[nodiscard]] bool empty() const { return bounds_.end == 0; }
  [[nodiscard]] CodeBounds bounds() const { return bounds_; }

 private:
  CodeBounds bounds_{std::numeric_limits<std::uint64_t>::max(), 0};
};

}  // namespace

// Sections say it best, and a separate debug file keeps their headers. The first executable segment may begin
// at 0, with the ELF header.
CodeBounds CodeBounds::of(const ElfFile& file) {
  BoundsOfParts parts;
  for (std::size_t i = 1; i < file.section_count(); ++i) {
    const auto section = file.section(i);
    if (section && (section->flags & SHF_EXECINSTR) != 0) parts.add(section->vaddr, section->size);
  }
  if (!parts.empty()) return parts.bounds();
  for (const ElfSegment& segment : file.segments()) {
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0) parts.add(segment.vaddr, segment.memsz);
  }
  if (parts.empty()) return {};
  CodeBounds bounds = parts.bounds();
  bounds.begin = std::max<std::uint64_t>(bounds.begin, 1);
  return bounds;
}

}  // namespace ddprof
