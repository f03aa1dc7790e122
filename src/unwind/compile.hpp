#pragma once

#include "elf/elf_file.hpp"
#include "unwind/rule_dictionary.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Turns the CFI of a file into its table. Never fails: what cannot be read is counted and becomes a gap.
// .eh_frame is taken first; .debug_frame fills the addresses that it leaves out.
[[nodiscard]] UnwindTable compile_unwind_table(const ElfFile& file, RuleDictionary& dictionary);

}  // namespace ddprof
