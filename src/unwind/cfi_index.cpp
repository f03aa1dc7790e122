#include "unwind/cfi_index.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "base/turns.hpp"
#include "unwind/cfi_program.hpp"
#include "unwind/unwind_table.hpp"

namespace ddprof {

namespace {

// Sorts by the upper half of the keys; equal ones keep their order. Three counting passes beat a comparing
// sort four times over on the 150,000 FDEs of libLLVM, and cannot be made slow by a chosen order.
void sort_by_upper_half(std::vector<std::uint64_t>& keys) {
  constexpr unsigned kBits = 11;
  constexpr std::size_t kBuckets = std::size_t{1} << kBits;
  if (std::is_sorted(keys.begin(), keys.end())) return;
  if (keys.size() < kBuckets) return std::sort(keys.begin(), keys.end());
  std::vector<std::uint64_t> sorted(keys.size());
  for (unsigned shift = 32; shift < 64; shift += kBits) {
    std::array<std::size_t, kBuckets> next{};
    for (const std::uint64_t key : keys) ++next[(key >> shift) & (kBuckets - 1)];
    std::size_t total = 0;
    for (std::size_t& bucket : next) total += std::exchange(bucket, total);
    for (const std::uint64_t key : keys) sorted[next[(key >> shift) & (kBuckets - 1)]++] = key;
    keys.swap(sorted);
  }
}

}  // namespace

CodeRanges::CodeRanges(std::span<const ElfSegment> segments) {
  for (const ElfSegment& segment : segments) {
    if (segment.type != PT_LOAD || (segment.flags & PF_X) == 0 || segment.memsz == 0) continue;
    if (segment.memsz > std::numeric_limits<std::uint64_t>::max() - segment.vaddr) continue;
    begin_ = ranges_.empty() ? segment.vaddr : std::min(begin_, segment.vaddr);
    end_ = std::max(end_, segment.vaddr + segment.memsz);
    ranges_.push_back({segment.vaddr, segment.memsz});
  }
  end_ = begin_ + std::min(end_ - begin_, UnwindTableBuilder::kMaxSpan);
  // Linkers make no more than a few; a file made of thousands shall not slow down each FDE.
  constexpr std::size_t kMaxRanges = 64;
  if (ranges_.size() > kMaxRanges) ranges_ = {{begin_, end_ - begin_}};
}

bool CodeRanges::contains(std::uint64_t address) const {
  if (address < begin_ || address >= end_) return false;
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [address](const Range& range) { return address - range.begin < range.size; });
}

std::uint64_t CodeRanges::bytes() const {
  std::uint64_t sum = 0;
  for (const Range& range : ranges_) sum += range.size;
  return sum;
}

CfiSection eh_frame_section(const ElfFile& file) {
  CfiSection section{.kind = CfiSection::Kind::eh_frame, .architecture = file.architecture()};
  const auto range = file.find_eh_frame();
  if (!range) return section;
  const auto address_of = [&](std::string_view name) {
    const auto found = file.find_section(name);
    return found ? found->vaddr : 0;
  };
  section.data = range->data;
  section.vaddr = range->vaddr;
  section.text_base = address_of(".text");
  section.data_base = address_of(".got");
  return section;
}

CfiIndex::CfiIndex(const CfiSection& section, const CodeRanges& code, UnwindTableCounters& counters,
                   const ReadLimits& limits)
    : section_(section), base_(code.begin()) {
  // Offsets must fit the lower half of a key.
  if (section_.data.size() > std::numeric_limits<std::uint32_t>::max()) {
    section_.data = section_.data.first(std::numeric_limits<std::uint32_t>::max());
  }
  collect_cies(counters, limits.count(sizeof(Cie), 4));
  collect_fdes(code, counters);
  sort_by_upper_half(keys_);
}

void CfiIndex::collect_cies(UnwindTableCounters& counters, std::size_t max_cies) {
  CfiProgram program;
  std::uint64_t offset = 0;
  // A terminator in the middle is left by linkers that merged sections: what follows is as good.
  while (const auto record = read_cfi_record(section_, offset)) {
    offset = record->next_offset;
    rest_point_among_many();
    if (record->kind != CfiRecord::Kind::cie) continue;
    if (cies_.size() >= max_cies) {
      ++counters.unread;
      continue;
    }
    auto cie = read_cie(section_, *record);
    if (cie && program.run_cie_program(section_, *cie)) {
      cies_.push_back(*cie);
    } else {
      ++counters.bad_entries;
    }
  }
  if (offset < section_.data.size())
    ++counters.bad_entries;  // a length that leaves the section: all after it is lost
}

void CfiIndex::collect_fdes(const CodeRanges& code, UnwindTableCounters& counters) {
  constexpr std::size_t kTypicalFdeBytes = 32;
  keys_.reserve(section_.data.size() / kTypicalFdeBytes);
  std::uint64_t offset = 0;
  while (const auto record = read_cfi_record(section_, offset)) {
    offset = record->next_offset;
    rest_point_among_many();
    if (record->kind == CfiRecord::Kind::fde) add_fde(*record, code, counters);
  }
}

void CfiIndex::add_fde(const CfiRecord& record, const CodeRanges& code, UnwindTableCounters& counters) {
  const auto fde = read_entry(record);
  if (!fde) {
    ++counters.bad_entries;
  } else if (fde->begin == fde->end) {
    return;  // a function of no bytes
  } else if (!code.contains(fde->begin)) {
    ++counters.stray_entries;
  } else {
    keys_.push_back((fde->begin - base_) << 32 | record.offset);
  }
}

CfiIndex::CfiIndex(const CfiSection& section, const EhFrameTable& table, std::uint64_t begin,
                   std::uint64_t end, const CodeRanges& code, UnwindTableCounters& counters)
    : section_(section), base_(code.begin()) {
  if (section_.data.size() > std::numeric_limits<std::uint32_t>::max()) return;
  // Records do not overlap, but a table may say so: many times what half a MiB of code has.
  std::size_t bytes_left = std::size_t{4} << 20U;
  for (std::size_t entry = table.find(begin).value_or(0); entry < table.size() && table.begin_of(entry) < end;
       ++entry) {
    const auto record = read_cfi_record(section_, table.record_of(entry) - section_.vaddr);
    constexpr std::uint64_t kLeast = 16;  // it takes time to find that there is none
    const std::size_t bytes = record ? std::max(record->next_offset - record->offset, kLeast) : kLeast;
    if (bytes > bytes_left) {
      ++counters.unread;
      break;
    }
    bytes_left -= bytes;
    if (!record || record->kind != CfiRecord::Kind::fde || !add_cie(record->cie_offset))
      ++counters.bad_entries;
    else
      add_fde(*record, code, counters);
  }
  sort_by_upper_half(keys_);
}

// Files have a handful of them.
bool CfiIndex::add_cie(std::uint64_t offset) {
  constexpr std::size_t kMaxCies = 1024;
  if (find_cie(offset) != nullptr) return true;
  const auto record = read_cfi_record(section_, offset);
  if (!record || record->kind != CfiRecord::Kind::cie || cies_.size() >= kMaxCies) return false;
  auto cie = read_cie(section_, *record);
  CfiProgram program;
  if (!cie || !program.run_cie_program(section_, *cie)) return false;
  const auto place =
      std::lower_bound(cies_.begin(), cies_.end(), offset,
                       [](const Cie& known, std::uint64_t wanted) { return known.offset < wanted; });
  cies_.insert(place, *cie);
  last_cie_ = nullptr;  // they have moved
  return true;
}

const Cie* CfiIndex::find_cie(std::uint64_t offset) const {
  if (last_cie_ != nullptr && last_cie_->offset == offset) return last_cie_;
  const auto found =
      std::lower_bound(cies_.begin(), cies_.end(), offset,
                       [](const Cie& cie, std::uint64_t wanted) { return cie.offset < wanted; });
  if (found == cies_.end() || found->offset != offset) return nullptr;
  return last_cie_ = &*found;
}

std::optional<Fde> CfiIndex::read_entry(const CfiRecord& record) const {
  const Cie* cie = find_cie(record.cie_offset);
  if (cie == nullptr) return std::nullopt;
  return read_fde(section_, record, *cie);
}

std::optional<Fde> CfiIndex::fde(std::size_t index) const {
  const auto record = read_cfi_record(section_, offset_of(index));
  if (!record) return std::nullopt;
  return read_entry(*record);
}

}  // namespace ddprof
