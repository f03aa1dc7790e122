#include "symbol/dwarf/debug_info.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "symbol/dwarf/code_bounds.hpp"
#include "symbol/dwarf/dwarf_file.hpp"
#include "symbol/dwarf/supplementary.hpp"
#include "symbol/dwarf/unit_calls.hpp"
#include "symbol/dwarf/unit_index.hpp"

namespace ddprof {

namespace {

// An address and the first address of the same unit, both as their places in the list.
struct WantedAddress {
  std::uint32_t first = 0;
  std::uint32_t place = 0;
  std::uint32_t unit = 0;
};

}  // namespace

class DebugInfo::Reader {
 public:
  Reader(const ElfFile& file, DebugFileSource& others, const ReadLimits& limits)
      : budget_(limits),
        file_(file, DwarfSections::Kind::whole, problem_, budget_),
        bounds_(CodeBounds::of(file)),
        calls_(bounds_, others, problem_, budget_) {
    if (const ElfFile* other = find_supplementary(file, others)) {
      supplementary_.emplace(*other, DwarfSections::Kind::whole, problem_, budget_);
      file_.set_supplementary(&*supplementary_);
    }
  }

  std::size_t find(std::span<const std::uint64_t> addresses, const Take& take, const KeepGoing& keep_going);
  [[nodiscard]] bool has_units() { return !file_.section(DwarfSection::info).empty(); }
  [[nodiscard]] std::string_view problem() const { return problem_.text(); }
  [[nodiscard]] std::size_t memory_bytes() const {
    return file_.memory_bytes() + (supplementary_ ? supplementary_->memory_bytes() : 0) +
           (index_ ? index_->memory_bytes() : 0) + calls_.memory_bytes();
  }
  void drop_pages() const {
    file_.drop_pages();
    if (supplementary_) supplementary_->drop_pages();
  }

 private:
  // Grouped by unit, in the order of the units' first addresses.
  std::vector<WantedAddress> group(std::span<const std::uint64_t> addresses);

  DwarfProblem problem_;
  WorkBudget budget_;
  DwarfFile file_;
  std::optional<DwarfFile> supplementary_;
  CodeBounds bounds_;
  std::optional<UnitIndex> index_;
  UnitCalls calls_;
};

std::vector<WantedAddress> DebugInfo::Reader::group(std::span<const std::uint64_t> addresses) {
  if (!index_) index_ = UnitIndex::build(file_, bounds_);
  absl::flat_hash_map<std::uint32_t, std::uint32_t> first_of_unit;
  std::vector<WantedAddress> wanted;
  wanted.reserve(addresses.size());
  for (std::uint32_t place = 0; place < addresses.size(); ++place) {
    const auto unit = index_->find(addresses[place]);
    if (!unit) continue;
    const std::uint32_t first = first_of_unit.emplace(*unit, place).first->second;
    wanted.push_back({first, place, *unit});
  }
  std::sort(wanted.begin(), wanted.end(), [](const WantedAddress& a, const WantedAddress& b) {
    return std::pair(a.first, a.place) < std::pair(b.first, b.place);
  });
  return wanted;
}

std::size_t DebugInfo::Reader::find(std::span<const std::uint64_t> addresses, const Take& take,
                                    const KeepGoing& keep_going) {
  budget_.refill();
  const std::vector<WantedAddress> wanted = group(addresses);
  std::vector<std::uint64_t> of_unit;
  for (auto at = wanted.begin(); at != wanted.end();) {
    const WantedAddress& first = *at;
    // All that comes before it was found, or is in no unit.
    if (!keep_going()) return first.place;
    of_unit.clear();
    for (; at != wanted.end() && at->unit == first.unit; ++at) of_unit.push_back(addresses[at->place]);
    if (const auto unit = file_.unit_at(file_.units()[first.unit])) calls_.find(*unit, of_unit, take);
  }
  return addresses.size();
}

Result<DebugInfo> DebugInfo::open(const ElfFile& file, DebugFileSource& others, const ReadLimits& limits) {
  auto reader = std::make_unique<Reader>(file, others, limits);
  if (!reader->has_units() && !reader->problem().empty())
    return Error{ErrorCode::exhausted, std::string(reader->problem())};
  if (!reader->has_units()) return make_error(ErrorCode::not_found, "read debug information: there is none");
  return DebugInfo(std::move(reader));
}

std::uint64_t DebugInfo::uncompressed_bytes(const ElfFile& file) {
  return DwarfSections::uncompressed_bytes(file);
}

DebugInfo::DebugInfo(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;
DebugInfo::~DebugInfo() = default;

std::size_t DebugInfo::find(std::span<const std::uint64_t> addresses, const Take& take,
                            const KeepGoing& keep_going) {
  return reader_->find(addresses, take, keep_going);
}

std::string_view DebugInfo::problem() const { return reader_->problem(); }

std::size_t DebugInfo::memory_bytes() const { return reader_->memory_bytes(); }

void DebugInfo::drop_pages() const { reader_->drop_pages(); }

}  // namespace ddprof
