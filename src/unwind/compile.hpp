#pragma once

#include "elf/elf_file.hpp"
#include "unwind/rule_dictionary.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Turns what a file says of its frames, CFI or the tables of Go, into its table. Never fails: what cannot be
// read is counted and becomes a gap. The tables of Go are taken first, then .eh_frame; .debug_frame fills the
// addresses that both leave out. A section larger than the limit is not read at all.
[[nodiscard]] UnwindTable compile_unwind_table(const ElfFile& file, RuleDictionary& dictionary,
                                               const ReadLimits& limits = {});

}  // namespace ddprof
