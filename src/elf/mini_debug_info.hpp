#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

// A symbol table is some 24 bytes and a name per function: this is room for millions of them.
inline constexpr std::size_t kMaxMiniDebugInfoBytes = std::size_t{256} << 20;

// .gnu_debugdata: a small ELF file, packed with xz, whose .symtab has the functions that the stripped file
// does not name. The addresses are those of `file`. `not_found` when there is no such section.
Result<std::vector<std::byte>> unpack_mini_debug_info(const ElfFile& file,
                                                      std::size_t max_bytes = kMaxMiniDebugInfoBytes);

}  // namespace ddprof
