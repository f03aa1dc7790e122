#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// What comparing the table of one file with libdw's reading of the same CFI found.
struct OracleReport {
  std::size_t rows = 0;
  std::size_t table_bytes = 0;
  std::uint64_t unsupported_rows = 0;
  std::uint64_t bad_entries = 0;
  std::uint64_t stray_entries = 0;
  double build_ms = 0;
  std::uint64_t compared = 0;
  std::uint64_t unsupported = 0;  // compared addresses whose rule says so
  std::uint64_t popped =
      0;  // explained difference: fp's slot is below sp, we say that fp is already restored
  // Explained difference: a new CFA register after a CFA expression (libgcrypt's assembly). libdw refuses the
  // rule; we keep the offset from before the expression, as libgcc does.
  std::uint64_t refused = 0;
  // Explained difference: Go's .debug_frame says nothing of frame pointers, nor that the runtime leaves a
  // stack.
  std::uint64_t untold_by_go = 0;
  std::uint64_t mismatches = 0;
  std::vector<std::string> details = {};  // the first mismatches
};

// Compiles the table of an ELF image and compares its rules with libdw's at the first and the last byte of
// rows, about `max_samples` addresses spread over the file. Both sides are evaluated with made-up registers
// and memory, so that what is compared is what a rule computes and not how it is written.
[[nodiscard]] Result<OracleReport> compare_with_libdw(std::span<const std::byte> image,
                                                      RuleDictionary& dictionary, std::size_t max_samples);

}  // namespace ddprof
