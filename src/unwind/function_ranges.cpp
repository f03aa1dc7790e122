#include "unwind/function_ranges.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// Those of compilers have some dozens. What a file says in a longer one is not searched for each address.
constexpr std::size_t kMaxRecordBytes = 1024;

std::optional<CfiRecord> read_bounded_record(const CfiSection& section, std::uint64_t offset) {
  auto record = read_cfi_record(section, offset);
  if (record) record->body = record->body.first(std::min(record->body.size(), kMaxRecordBytes));
  return record;
}

}  // namespace

FunctionRanges::FunctionRanges(const ElfFile& file, const ReadLimits& limits)
    : section_(eh_frame_section(file)) {
  if (section_.data.empty()) return;
  table_ = EhFrameTable(file);
  if (!table_.empty() || section_.data.size() > limits.bytes()) return;
  UnwindTableCounters counters;
  index_ = std::make_unique<const CfiIndex>(section_, CodeRanges(file.segments()), counters, limits);
}

std::optional<std::size_t> FunctionRanges::last_before(std::uint64_t elf_address) const {
  return last_at_or_before(size(), elf_address, [this](std::size_t entry) { return begin_of(entry); });
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
  const auto entry = last_before(elf_address);
  const auto range = entry ? range_at(offset_of(*entry)) : std::nullopt;
  // Padding behind a function, or code without an entry.
  if (!range || elf_address < range->begin || elf_address >= range->end) return std::nullopt;
  return range;
}

FunctionRange FunctionRanges::gap_at(std::uint64_t elf_address) const {
  FunctionRange gap{0, UINT64_MAX};
  const auto entry = last_before(elf_address);
  const auto range = entry ? range_at(offset_of(*entry)) : std::nullopt;
  if (range && range->end <= elf_address) gap.begin = range->end;
  const std::size_t next = entry ? *entry + 1 : 0;
  if (next < size()) gap.end = begin_of(next);
  return gap;
}

}  // namespace ddprof
