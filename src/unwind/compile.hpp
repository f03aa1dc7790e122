#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.hpp"
#include "elf/elf_file.hpp"
#include "elf/read_limits.hpp"
#include "unwind/cfi_index.hpp"
#include "unwind/eh_frame_table.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// Turns what a file says of its frames, CFI or the tables of Go, into its table. Never fails: what cannot be
// read is counted and becomes a gap. The tables of Go are taken first, then .eh_frame; .debug_frame fills the
// addresses that both leave out. A section larger than the limit is not read at all.
[[nodiscard]] UnwindTable compile_unwind_table(const ElfFile& file, RuleDictionary& dictionary,
                                               const ReadLimits& limits = {});

// The .eh_frame of a large file by windows of its code, each read by the sorted table of .eh_frame_hdr when a
// stack first enters it: a run sees a small part of a compiler or a browser. The image must outlive it.
class WindowCompiler {
 public:
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 19U;  // of code
  static constexpr std::size_t kLargeBytes = std::size_t{1} << 20U;       // of .eh_frame: 6 ms

  // None: the file is small, has no such table, or tells of its code elsewhere too.
  static std::optional<WindowCompiler> of(const ElfFile& file, std::size_t large_bytes = kLargeBytes);

  // The number of the window with this address; none: there is no code.
  [[nodiscard]] std::optional<std::size_t> window_of(std::uint64_t elf_address) const;
  [[nodiscard]] std::size_t size() const;
  // Right for the addresses of that window, with what compile_unwind_table() says of them.
  [[nodiscard]] UnwindTable compile(std::size_t window, RuleDictionary& dictionary,
                                    const ReadLimits& limits = {}) const;

 private:
  WindowCompiler(const ElfFile& file, const CodeRanges& code, const EhFrameTable& table)
      : section_(eh_frame_section(file)), code_(code), table_(table) {}

  CfiSection section_;
  CodeRanges code_;
  EhFrameTable table_;
};

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
