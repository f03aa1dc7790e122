#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "unwind/no_return_functions.hpp"
#include "wire/unwind_table.h"

namespace ddprof {

// Index into the RuleDictionary. The first two are the same in every dictionary.
enum class RuleIndex : std::uint16_t { gap = 0, unsupported = 1 };
constexpr std::size_t to_int(RuleIndex index) { return static_cast<std::size_t>(index); }

// The distinct unwind rules of all tables of this process: a whole Debian system needs about 4,400, so that
// 16 bits name any of them. Rules are never removed and never move: a reference or span stays valid.
class RuleDictionary {
 public:
  RuleDictionary();
  RuleDictionary(const RuleDictionary&) = delete;
  RuleDictionary& operator=(const RuleDictionary&) = delete;

  // What follows is of another file. No file may take more than a quarter of the room that is left, so that
  // none of them can fill it; what processes write while they run gets nothing of the second half.
  void start_file() { continue_file(room_for_file()); }
  [[nodiscard]] std::size_t room_for_file() const {
    return (DDPROF_MAX_UNWIND_RULES - rules_.size() + 3) / 4;
  }
  // What follows is of a file that may add so many more.
  void continue_file(std::size_t room) {
    limit_ = std::min<std::size_t>(rules_.size() + room, DDPROF_MAX_UNWIND_RULES);
  }
  void start_generated_code() { limit_ = DDPROF_MAX_UNWIND_RULES / 2; }

  // The index of this rule; RuleIndex::unsupported (and one more refusal) when the dictionary is full, for
  // this file.
  RuleIndex intern(const ddprof_unwind_rule& rule) {
    const std::uint64_t key = key_of(rule);
    const Recent& recent = recent_[recent_slot(key)];
    return recent.key == key ? recent.index : intern_slowly(rule, key);
  }

  [[nodiscard]] const ddprof_unwind_rule& operator[](RuleIndex index) const { return rules_[to_int(index)]; }
  [[nodiscard]] std::span<const ddprof_unwind_rule> rules() const { return rules_; }
  [[nodiscard]] std::size_t size() const { return rules_.size(); }
  [[nodiscard]] std::uint64_t refusals() const { return refusals_; }

 private:
  // Compilers emit a few dozen rules over and over: a direct-mapped cache answers before the hash table is
  // asked.
  struct Recent {
    std::uint64_t key = 0;  // 0 is the gap rule, whose index the zeroed slot also holds
    RuleIndex index = RuleIndex::gap;
  };
  static constexpr unsigned kRecentBits = 9;

  static std::uint64_t key_of(const ddprof_unwind_rule& rule) {
    std::uint64_t key = 0;
    std::memcpy(&key, &rule, sizeof key);
    return key;
  }
  static std::size_t recent_slot(std::uint64_t key) {
    return (key * 0x9e3779b97f4a7c15U) >> (64 - kRecentBits);
  }
  RuleIndex intern_slowly(const ddprof_unwind_rule& rule, std::uint64_t key);

  std::vector<ddprof_unwind_rule> rules_;
  absl::flat_hash_map<std::uint64_t, RuleIndex> indices_;
  std::array<Recent, std::size_t{1} << kRecentBits> recent_{};
  std::uint64_t refusals_ = 0;
  std::size_t limit_ = DDPROF_MAX_UNWIND_RULES;
};

// What the compiler met on the way. Nothing of it stops a table from being built.
struct UnwindTableCounters {
  std::uint64_t unsupported_rows = 0;  // CFI that a rule cannot express, or a full dictionary
  std::uint64_t bad_entries = 0;       // CIEs and FDEs that could not be parsed: their addresses are gaps
  std::uint64_t stray_entries = 0;     // FDEs outside of the executable segments, or that overlap another one
  std::uint64_t covered_bytes = 0;     // of code that has rows
  std::uint64_t unread = 0;  // sections, CIEs and rows that were left out: more than one file may take
};

class UnwindTable;

// Parts of a table that is too large to be compiled in whole: made when they are first asked for.
class TableWindows {
 public:
  virtual ~TableWindows() = default;
  // The one with this address; null when there is none, or not yet.
  virtual const UnwindTable* find(std::uint64_t elf_address) = 0;
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
    if (offset >= size_) return windows_ == nullptr ? RuleIndex::gap : find_in_window(elf_address);
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

  // Whether the function that begins at `begin` has code at `address`, both as written in the ELF file. Parts
  // that the compiler moved away from the rest (".cold") do not count as its code.
  [[nodiscard]] bool is_function_with(std::uint64_t begin, std::uint64_t address) const;

  [[nodiscard]] bool empty() const { return size_ == 0; }
  // No other table that was compiled has it; 0 for an empty one.
  [[nodiscard]] std::uint64_t id() const { return id_; }
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
    return rows_.size() * sizeof(ddprof_unwind_row) + pages_.size() * sizeof(std::uint32_t) +
           adjoining_.size() * sizeof(std::uint32_t) + no_return_.bytes();
  }
  [[nodiscard]] const UnwindTableCounters& counters() const { return counters_; }

  // For walks over code that has no rows; empty if nearly all code has them.
  [[nodiscard]] const NoReturnFunctions& no_return() const { return no_return_; }
  void set_no_return(NoReturnFunctions functions) { no_return_ = std::move(functions); }

  // Of an empty table: who has its rows. Must outlive it.
  void set_windows(TableWindows* windows) { windows_ = windows; }

  // From a dictionary of its own to one that it shares. Rules for which that has no room become unsupported.
  void translate(const RuleDictionary& from, RuleDictionary& to);

 private:
  friend class UnwindTableBuilder;

  [[nodiscard]] RuleIndex find_in_window(std::uint64_t elf_address) const;

  std::uint64_t id_ = 0;
  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  unsigned page_shift_ = 10;
  std::vector<std::uint32_t> pages_;
  std::vector<ddprof_unwind_row> rows_;
  // Offsets of functions right behind another one, without padding, of which no row tells: one in 16.
  std::vector<std::uint32_t> adjoining_;
  std::size_t row_count_ = 0;
  UnwindTableCounters counters_;
  NoReturnFunctions no_return_;
  TableWindows* windows_ = nullptr;
};

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
  // The next row is the first of a function. What came before it has ended, with a gap if there is room.
  void begin_function(std::uint64_t elf_address);

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
