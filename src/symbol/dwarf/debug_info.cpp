#include "symbol/dwarf/debug_info.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "elf/debug_links.hpp"
#include "symbol/dwarf/address_ranges.hpp"
#include "symbol/dwarf/dwarf_file.hpp"
#include "symbol/dwarf/function_names.hpp"
#include "symbol/dwarf/function_walk.hpp"
#include "symbol/dwarf/line_program.hpp"
#include "symbol/dwarf/split_units.hpp"
#include "symbol/dwarf/unit_index.hpp"

namespace ddprof {

namespace {

// The file that dwz moved the common parts of several files to. Null when this file names none, or it is not
// to be found.
const ElfFile* find_supplementary(const ElfFile& file, DebugFileSource& others) {
  const auto link = find_supplementary_link(file);
  return link ? others.supplementary(link->path, link->build_id) : nullptr;
}

}  // namespace

// Puts together what one unit says about addresses: functions and inlined calls, their names, and the lines.
class UnitCalls {
 public:
  UnitCalls(const CodeBounds& bounds, DebugFileSource& others, DwarfProblem& problem, WorkBudget& budget)
      : bounds_(bounds), budget_(budget), split_units_(others, problem, budget) {}

  // Addresses are sorted. Those that neither a function nor a line covers are not given.
  void find(const Unit& unit, std::span<const std::uint64_t> addresses, const DebugInfo::Take& take);
  [[nodiscard]] std::size_t memory_bytes() const {
    return split_units_.memory_bytes() + names_.memory_bytes();
  }

 private:
  void chain(const Unit& unit, const FunctionWalk& walk, std::uint32_t node, const FoundLine& line,
             const LineProgram* program);
  std::string_view path(const LineProgram* program, std::uint64_t file);

  const CodeBounds& bounds_;
  WorkBudget& budget_;
  SplitUnits split_units_;
  FunctionNames names_;
  std::unordered_map<std::uint64_t, std::string> paths_;  // of the files of the unit that were used
  std::size_t path_bytes_ = 0;
  std::vector<SourceCall> calls_;
};

namespace {

// Calls that were inlined into each other. Compilers stop long before.
constexpr std::size_t kMaxInlined = 512;

}  // namespace

void UnitCalls::find(const Unit& unit, std::span<const std::uint64_t> addresses,
                     const DebugInfo::Take& take) {
  names_.trim();
  paths_.clear();
  path_bytes_ = 0;
  const auto program = LineProgram::parse(unit);
  std::vector<FoundLine> lines(addresses.size());
  if (program) lines = find_lines(*program, addresses, bounds_, budget_);

  const auto rest = split_units_.find(unit);
  const Unit& functions = rest != nullptr ? *rest : unit;
  FunctionWalk walk(functions, addresses, bounds_);
  walk.run();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::uint32_t innermost = walk.innermost()[i];
    if (innermost == FunctionNode::kNone && !lines[i].is_found) continue;
    if (budget_.is_spent()) break;
    chain(functions, walk, innermost, lines[i], program ? &*program : nullptr);
    take(addresses[i], calls_);
  }
  if (rest != nullptr) names_.clear();  // its file goes away
}

// From the inside out: the line of the code, then, for each call that was inlined, the line where it was.
void UnitCalls::chain(const Unit& unit, const FunctionWalk& walk, std::uint32_t node, const FoundLine& line,
                      const LineProgram* program) {
  calls_.clear();
  SourceCall call;
  if (line.is_found) call = {{}, {}, path(program, line.file), line.line, line.column, 0};
  if (node == FunctionNode::kNone) calls_.push_back(call);
  while (node != FunctionNode::kNone && calls_.size() < kMaxInlined && budget_.spend(1)) {
    const FunctionNode& function = walk.node(node);
    const FunctionName name = names_.find(unit, function.entry);
    call.linker_name = name.linker_name;
    call.name = name.name;
    call.start_line = name.start_line;
    calls_.push_back(call);
    call = {{}, {}, path(program, function.call_file), function.call_line, function.call_column, 0};
    node = function.parent;
  }
}

std::string_view UnitCalls::path(const LineProgram* program, std::uint64_t file) {
  if (program == nullptr) return {};
  const auto found = paths_.find(file);
  if (found != paths_.end()) return found->second;
  std::string path = program->path(file);
  path_bytes_ += path.size();
  if (!budget_.spend(path.size()) || path_bytes_ > budget_.limits().bytes() / 8) return {};
  return paths_.emplace(file, std::move(path)).first->second;
}

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
