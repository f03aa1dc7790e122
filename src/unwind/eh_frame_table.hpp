#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "elf/elf_file.hpp"

namespace ddprof {

// The last of `count` sorted things that begins at or before the address.
template <typename BeginOf>
std::optional<std::size_t> last_at_or_before(std::size_t count, std::uint64_t address, BeginOf&& begin_of) {
  std::size_t low = 0;
  std::size_t high = count;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (begin_of(middle) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low > 0 ? std::optional(low - 1) : std::nullopt;
}

// The sorted table of .eh_frame_hdr: where the code of each FDE begins, and where in .eh_frame it is. It
// leads to the entry of an address without reading the others. A view: the image must outlive it.
class EhFrameTable {
 public:
  EhFrameTable() = default;
  // Empty when the file has no such table, or one that linkers do not write.
  explicit EhFrameTable(const ElfFile& file);

  [[nodiscard]] std::size_t size() const { return entries_.size() / sizeof(Entry); }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::uint64_t begin_of(std::size_t index) const { return at(entry(index).begin); }
  // The address of the FDE.
  [[nodiscard]] std::uint64_t record_of(std::size_t index) const { return at(entry(index).record); }
  // The last that begins at or before the address.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t elf_address) const {
    return last_at_or_before(size(), elf_address, [this](std::size_t index) { return begin_of(index); });
  }

 private:
  struct Entry {
    std::int32_t begin = 0;   // of the code
    std::int32_t record = 0;  // of its FDE
  };
  [[nodiscard]] Entry entry(std::size_t index) const;
  [[nodiscard]] std::uint64_t at(std::int32_t offset) const {
    return base_ + static_cast<std::uint64_t>(std::int64_t{offset});
  }

  std::uint64_t base_ = 0;  // what the numbers of the table are relative to
  std::span<const std::byte> entries_;
};

}  // namespace ddprof
