#pragma once

#include <cstdint>
#include <limits>

#include "elf/elf_file.hpp"

namespace ddprof {

// Where a file has code at all. Linkers leave debug information about functions that they threw away, and put
// them at 0, 1, -1 or -2: outside.
struct CodeBounds {
  std::uint64_t begin = 1;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max() - 2;

  static CodeBounds of(const ElfFile& file);
  [[nodiscard]] bool contain(std::uint64_t from, std::uint64_t to) const {
    return from < to && from >= begin && to <= end;
  }
};

}  // namespace ddprof
