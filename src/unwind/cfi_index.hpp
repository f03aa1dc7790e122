#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elf/elf_file.hpp"
#include "unwind/cfi_reader.hpp"
#include "unwind/eh_frame_table.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

// The addresses where code can be: the executable segments.
class CodeRanges {
 public:
  explicit CodeRanges(std::span<const ElfSegment> segments);

  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] bool contains(std::uint64_t address) const;
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t size;
  };
  std::vector<Range> ranges_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;  // at most 4 GiB after begin: what is farther is not indexed
};

// The .eh_frame of a file; without bytes when it has none.
[[nodiscard]] CfiSection eh_frame_section(const ElfFile& file);

// The FDEs of one section in the order of the code that they describe. CIEs are parsed and executed once
// each.
class CfiIndex {
 public:
  CfiIndex(const CfiSection& section, const CodeRanges& code, UnwindTableCounters& counters,
           const ReadLimits& limits = {});
  // Those of the table alone that cover [begin, end).
  CfiIndex(const CfiSection& section, const EhFrameTable& table, std::uint64_t begin, std::uint64_t end,
           const CodeRanges& code, UnwindTableCounters& counters);
  CfiIndex(const CfiIndex&) = delete;  // its FDEs point to its CIEs
  CfiIndex& operator=(const CfiIndex&) = delete;

  [[nodiscard]] const CfiSection& section() const { return section_; }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  [[nodiscard]] std::uint64_t begin_of(std::size_t index) const { return base_ + (keys_[index] >> 32); }
  [[nodiscard]] std::uint64_t offset_of(std::size_t index) const { return keys_[index] & 0xffffffffU; }
  [[nodiscard]] std::optional<Fde> fde(std::size_t index) const;
  [[nodiscard]] std::size_t memory_bytes() const {
    return keys_.capacity() * sizeof keys_[0] + cies_.capacity() * sizeof(Cie);
  }

 private:
  void collect_cies(UnwindTableCounters& counters, std::size_t max_cies);
  void collect_fdes(const CodeRanges& code, UnwindTableCounters& counters);
  void add_fde(const CfiRecord& record, const CodeRanges& code, UnwindTableCounters& counters);
  bool add_cie(std::uint64_t offset);
  [[nodiscard]] const Cie* find_cie(std::uint64_t offset) const;
  [[nodiscard]] std::optional<Fde> read_entry(const CfiRecord& record) const;

  CfiSection section_;
  std::uint64_t base_ = 0;
  std::vector<Cie> cies_;            // by offset
  std::vector<std::uint64_t> keys_;  // (address - base_) << 32 | offset in the section: sorts as one number
  mutable const Cie* last_cie_ = nullptr;
};

}  // namespace ddprof
