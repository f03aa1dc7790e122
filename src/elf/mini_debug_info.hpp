#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "elf/elf_file.hpp"

namespace ddprof {

// .gnu_debugdata: a small ELF file, packed with xz, whose .symtab has the functions that the stripped file
// does not name. The addresses are those of `file`. `not_found` when there is no such section, `exhausted`
// when it is larger than `max_bytes`, or was packed with a dictionary that is.
Result<std::vector<std::byte>> unpack_mini_debug_info(const ElfFile& file,
                                                      std::uint64_t max_bytes = ReadLimits().bytes());

}  // namespace ddprof
