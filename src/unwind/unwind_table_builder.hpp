#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "unwind/unwind_table.hpp"

namespace ddprof {

// Rows in, in address order, straight into the final layout; the page size is settled at the end.
class UnwindTableBuilder {
 public:
  static constexpr unsigned kMinPageShift = 10;
  static constexpr unsigned kMaxPageShift = 16;
  // No table spans more: it bounds the page index of a hostile file, and offsets fit 32 bits.
  static constexpr std::uint64_t kMaxSpan = std::uint64_t{1} << 32;

  // Rows will lie in [base, base + span). `expected_rows` sizes memory and the first guess of the page size.
  // Past `max_rows` there is a gap.
  UnwindTableBuilder(std::uint64_t base, std::uint64_t span, std::size_t expected_rows,
                     std::size_t max_rows = std::numeric_limits<std::size_t>::max());

  // From `elf_address` on, until the next row, `rule` governs; before the first row there is a gap. Addresses
  // go up. Dropped: a row with the rule of the one before, and one out of order or out of the span.
  void add(std::uint64_t elf_address, RuleIndex rule);

  // The last row ends at `end_address`.
  [[nodiscard]] UnwindTable finish(std::uint64_t end_address, const UnwindTableCounters& counters) &&;

 private:
  void open_pages_until(std::uint64_t page);
  void coarsen(unsigned page_shift);

  UnwindTable table_;
  std::uint64_t span_;
  std::size_t max_rows_;
  std::uint64_t unread_rows_ = 0;
  std::uint64_t next_offset_ = 0;  // the lowest that a row may have
  RuleIndex last_rule_ = RuleIndex::gap;
};

}  // namespace ddprof
