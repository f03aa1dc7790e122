#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/registers.hpp"
#include "elf/elf_file.hpp"
#include "elf/read_limits.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Turns what a file says of its frames, CFI or the tables of Go, into its table. Never fails: what cannot be
// read is counted and becomes a gap. The tables of Go are taken first, then .eh_frame; .debug_frame fills the
// addresses that both leave out. A section larger than the limit is not read at all.
[[nodiscard]] UnwindTable compile_unwind_table(const ElfFile& file, RuleDictionary& dictionary,
                                               const ReadLimits& limits = {});

// One piece of code that a JIT compiler made and gave unwinding information for. Its addresses in the
// .eh_frame, which lies as if at `vaddr`, are less than those in memory by `moved_by` (modulo 2^64).
struct GeneratedCode {
  std::uint64_t begin = 0;  // in memory
  std::uint64_t end = 0;
  std::uint64_t moved_by = 0;
  std::uint64_t vaddr = 0;
  std::span<const std::byte> eh_frame;
};

// One table, by run-time addresses, for all the generated code of a process. `pieces` are sorted and do not
// overlap. Never fails: what cannot be read is counted and becomes a gap, as does what is 4 GiB or more
// behind the first piece.
[[nodiscard]] UnwindTable compile_generated_code(std::span<const GeneratedCode> pieces,
                                                 Architecture architecture, RuleDictionary& dictionary,
                                                 const ReadLimits& limits = {});

}  // namespace ddprof
