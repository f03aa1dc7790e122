#include "unwind/function_ranges.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// Of .eh_frame_hdr (LSB core, "DWARF exception header encoding"): signed, 4 bytes, relative to the header.
// Every linker writes its table so.
constexpr std::uint8_t kTableEncoding = 0x3b;
// Those of compilers have some dozens. What a file says in a longer one is not searched for each address.
constexpr std::size_t kMaxRecordBytes = 1024;

struct TableEntry {
  std::int32_t begin = 0;   // of the code
  std::int32_t record = 0;  // of its FDE
};

std::span<const std::byte> search_table(const ElfRange& header) {
  const CfiSection section{.data = header.data, .vaddr = header.vaddr, .data_base = header.vaddr};
  ByteCursor cursor(header.data);
  const std::uint8_t version = cursor.u8();
  const std::uint8_t eh_frame_encoding = cursor.u8();
  const std::uint8_t count_encoding = cursor.u8();
  const std::uint8_t table_encoding = cursor.u8();
  if (version != 1 || table_encoding != kTableEncoding) return {};
  static_cast<void>(read_encoded_pointer(section, eh_frame_encoding, cursor));
  const std::uint64_t count = read_encoded_pointer(section, count_encoding, cursor);
  return cursor.take(std::min(count, cursor.left() / sizeof(TableEntry)) * sizeof(TableEntry));
}

std::uint64_t add_signed(std::uint64_t base, std::int32_t offset) {
  return base + static_cast<std::uint64_t>(std::int64_t{offset});
}

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

std::optional<CfiRecord> read_bounded_record(const CfiSection& section, std::uint64_t offset) {
  auto record = read_cfi_record(section, offset);
  if (record) record->body = record->body.first(std::min(record->body.size(), kMaxRecordBytes));
  return record;
}

}  // namespace

FunctionRanges::FunctionRanges(const ElfFile& file, const ReadLimits& limits)
    : section_(eh_frame_section(file)) {
  if (section_.data.empty()) return;
  if (const auto header = file.find_eh_frame_hdr()) {
    table_base_ = header->vaddr;
    table_ = search_table(*header);
  }
  if (!table_.empty() || section_.data.size() > limits.bytes()) return;
  UnwindTableCounters counters;
  index_ = std::make_unique<const CfiIndex>(section_, CodeRanges(file.segments()), counters, limits);
}

std::optional<std::uint64_t> FunctionRanges::offset_by_table(std::uint64_t elf_address) const {
  const auto entry = [this](std::size_t index) {
    return load<TableEntry>(table_, index * sizeof(TableEntry)).value_or(TableEntry{});
  };
  const auto found =
      last_at_or_before(table_.size() / sizeof(TableEntry), elf_address,
                        [&](std::size_t index) { return add_signed(table_base_, entry(index).begin); });
  if (!found) return std::nullopt;
  return add_signed(table_base_, entry(*found).record) - section_.vaddr;
}

std::optional<std::uint64_t> FunctionRanges::offset_by_index(std::uint64_t elf_address) const {
  const auto found = last_at_or_before(index_->size(), elf_address,
                                       [this](std::size_t index) { return index_->begin_of(index); });
  return found ? std::optional(index_->offset_of(*found)) : std::nullopt;
}

std::optional<FunctionRange> FunctionRanges::range_at(std::uint64_t offset) const {
  const auto record = read_bounded_record(section_, offset);
  if (!record || record->kind != CfiRecord::Kind::fde) return std::nullopt;
  const auto cie_record = read_bounded_record(section_, record->cie_offset);
  if (!cie_record || cie_record->kind != CfiRecord::Kind::cie) return std::nullopt;
  const auto cie = read_cie(section_, *cie_record);
  if (!cie) return std::nullopt;
  const auto fde = read_fde(section_, *record, *cie);
  if (!fde) return std::nullopt;
  return FunctionRange{fde->begin, fde->end};
}

std::optional<FunctionRange> FunctionRanges::find(std::uint64_t elf_address) const {
  const auto offset = index_ ? offset_by_index(elf_address) : offset_by_table(elf_address);
  const auto range = offset ? range_at(*offset) : std::nullopt;
  // Padding behind a function, or code without an entry.
  if (!range || elf_address < range->begin || elf_address >= range->end) return std::nullopt;
  return range;
}

}  // namespace ddprof
