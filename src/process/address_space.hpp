#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// One executable mapping of a process. `bias` turns a run-time address into the ELF address of its file:
// elf = run-time - bias.
struct CodeMapping {
  Address start{};
  Address end{};
  std::uint64_t file_offset = 0;
  std::uint64_t bias = 0;
  FileId file = FileId::none;

  [[nodiscard]] bool contains(Address address) const { return start <= address && address < end; }
};

// The executable mappings of one process, sorted and without overlap: a new mapping replaces what it covers,
// as mmap(MAP_FIXED) does. munmap leaves no record in a perf stream, so stale mappings last until they are
// covered.
class AddressSpace {
 public:
  void map(const CodeMapping& mapping);
  [[nodiscard]] const CodeMapping* find(Address address) const;
  [[nodiscard]] const std::vector<CodeMapping>& mappings() const { return mappings_; }

 private:
  std::vector<CodeMapping> mappings_;
};

}  // namespace ddprof
