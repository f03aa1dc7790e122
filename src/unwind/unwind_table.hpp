#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "unwind/rule_dictionary.hpp"
#include "wire/unwind_table.h"

namespace ddprof {

// What the compiler met on the way. Nothing of it stops a table from being built.
struct UnwindTableCounters {
  std::uint64_t unsupported_rows = 0;  // CFI that a rule cannot express, or a full dictionary
  std::uint64_t bad_entries = 0;       // CIEs and FDEs that could not be parsed: their addresses are gaps
  std::uint64_t stray_entries = 0;     // FDEs outside of the executable segments, or that overlap another one
  std::uint64_t unread = 0;  // sections, CIEs and rows that were left out: more than one file may take
};

// The CFI of one ELF file as a sorted, paged array of rules (layout: wire/unwind_table.h). Immutable; made by
// compile_unwind_table() or, in tests, by an UnwindTableBuilder.
class UnwindTable {
 public:
  UnwindTable() = default;  // covers nothing
  UnwindTable(UnwindTable&&) = default;
  UnwindTable& operator=(UnwindTable&&) = default;

  // The rule that governs an address as written in the ELF file; RuleIndex::gap outside of the table.
  [[nodiscard]] RuleIndex find(std::uint64_t elf_address) const {
    const std::uint64_t offset = elf_address - base_;
    if (offset >= size_) return RuleIndex::gap;
    const std::uint64_t page = offset >> page_shift_;
    const auto low = static_cast<std::uint32_t>(offset & ((std::uint64_t{1} << page_shift_) - 1));
    const ddprof_unwind_row* row = rows_.data() + pages_[page];
    std::size_t count = pages_[page + 1] - pages_[page];
    // The first row of a page has pc_low 0, so an answer always exists; each step halves without a branch to
    // miss.
    while (count > 1) {
      const std::size_t half = count / 2;
      row += row[half].pc_low <= low ? half : 0;
      count -= half;
    }
    return RuleIndex{row->rule};
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::uint64_t end() const { return base_ + size_; }
  [[nodiscard]] unsigned page_shift() const { return page_shift_; }
  // One more than there are pages (none for an empty table).
  [[nodiscard]] std::span<const std::uint32_t> pages() const { return pages_; }
  [[nodiscard]] std::span<const ddprof_unwind_row> rows() const { return rows_; }

  // Distinct rows, without those repeated at the start of pages.
  [[nodiscard]] std::size_t row_count() const { return row_count_; }
  // Memory that the rows and their index take.
  [[nodiscard]] std::size_t bytes() const {
    return rows_.size() * sizeof(ddprof_unwind_row) + pages_.size() * sizeof(std::uint32_t);
  }
  [[nodiscard]] const UnwindTableCounters& counters() const { return counters_; }

  // From a dictionary of its own to one that it shares. Rules for which that has no room become unsupported.
  void translate(const RuleDictionary& from, RuleDictionary& to);

 private:
  friend class UnwindTableBuilder;

  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  unsigned page_shift_ = 10;
  std::vector<std::uint32_t> pages_;
  std::vector<ddprof_unwind_row> rows_;
  std::size_t row_count_ = 0;
  UnwindTableCounters counters_;
};

}  // namespace ddprof
