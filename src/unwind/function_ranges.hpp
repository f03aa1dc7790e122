#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "elf/elf_file.hpp"
#include "elf/read_limits.hpp"
#include "unwind/cfi_index.hpp"
#include "unwind/eh_frame_table.hpp"

namespace ddprof {

// The code of one function, or of a part that the compiler moved away from the rest (".cold").
struct FunctionRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Where the functions of a file begin and end by its .eh_frame, which stripped files have too. Only what a
// question needs is read: the sorted table of .eh_frame_hdr leads to the entry. A file without that table
// is indexed once. The image must outlive this.
class FunctionRanges {
 public:
  explicit FunctionRanges(const ElfFile& file, const ReadLimits& limits = {});

  // The one that covers this address.
  [[nodiscard]] std::optional<FunctionRange> find(std::uint64_t elf_address) const;
  // Where there is none: the code from the end of the function before it to the next.
  [[nodiscard]] FunctionRange gap_at(std::uint64_t elf_address) const;
  [[nodiscard]] std::size_t memory_bytes() const { return index_ ? index_->memory_bytes() : 0; }

 private:
  // Entries in the order of their code.
  [[nodiscard]] std::size_t size() const { return index_ ? index_->size() : table_.size(); }
  [[nodiscard]] std::uint64_t begin_of(std::size_t entry) const {
    return index_ ? index_->begin_of(entry) : table_.begin_of(entry);
  }
  [[nodiscard]] std::uint64_t offset_of(std::size_t entry) const {
    return index_ ? index_->offset_of(entry) : table_.record_of(entry) - section_.vaddr;
  }
  [[nodiscard]] std::optional<std::size_t> last_before(std::uint64_t elf_address) const;
  [[nodiscard]] std::optional<FunctionRange> range_at(std::uint64_t offset) const;

  CfiSection section_;
  EhFrameTable table_;
  std::unique_ptr<const CfiIndex> index_;  // without a table
};

}  // namespace ddprof
