#include "cli/annotation.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "cli/disassembler.hpp"
#include "report/tables.hpp"
#include "symbol/demangle.hpp"
#include "unwind/swept_functions.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxListings = 4;
constexpr std::size_t kMaxCodeBytes = std::size_t{1} << 20;
constexpr std::uint64_t kCodeBehind =
    64;  // shown behind the last sample where no symbol says where the function ends

struct SampledCode {
  std::uint32_t location = 0;  // one of those at the address
  StackSum sum;
};

// By mapping and run-time address: what was sampled where the function ran.
using SampledAddresses = std::map<std::pair<std::uint32_t, Address>, SampledCode>;

SampledAddresses sum_addresses(const ReportView& view, std::uint32_t frame) {
  std::map<std::pair<std::uint32_t, Address>, std::uint32_t> index;
  LocationIds ids;
  std::vector<std::uint32_t> locations{0};
  for (std::uint32_t at = 0; at < view.profile.locations.size(); ++at) {
    const ProfileLocation& location = view.profile.locations[at];
    const auto frames = view.frames.frames(at);
    const bool is_part = std::find(frames.begin(), frames.end(), frame) != frames.end();
    const auto next = static_cast<std::uint32_t>(index.size() + 1);
    if (is_part && index.emplace(std::pair(location.mapping, location.address), next).second)
      locations.push_back(at);
    ids.add(is_part ? index.at(std::pair(location.mapping, location.address)) : 0);
    ids.end_location();
  }
  const auto sums = sum_stacks(view.profile, view.selected.samples, ids, locations.size(), view.column);
  SampledAddresses addresses;
  for (const auto& [place, id] : index) {
    if (sums[id].self != 0 || sums[id].total != 0) addresses[place] = {locations[id], sums[id]};
  }
  return addresses;
}

// What was sampled in one symbol of a file, by address in the file.
struct SymbolCode {
  std::string name;
  std::uint64_t start = 0, end = 0;
  std::map<std::uint64_t, SampledCode> samples;

  [[nodiscard]] std::int64_t size() const {
    std::int64_t sum = 0;
    for (const auto& [address, code] : samples) sum = saturating_add(sum, size_of_value(code.sum.total));
    return sum;
  }
};

std::string place_of(const ReportView& view, std::uint32_t location) {
  for (const ProfileLine& line : view.profile.locations[location].lines) {
    const StringIndex file = view.profile.functions[line.function].file;
    if (file != 0 && line.line > 0) return place(base_name(view.profile.text(file)), line.line);
  }
  return {};
}

// One file with code of the function.
class CodeFileListing {
 public:
  CodeFileListing(const ReportView& view, std::uint32_t frame, const MappedCode& code)
      : view_(view), frame_(frame), code_(code), swept_(code.elf()) {}

  void add(const ProfileMapping& mapping, Address address, const SampledCode& sampled) {
    if (const auto at = elf_address(code_.elf(), mapping, address)) addresses_.emplace_back(*at, sampled);
  }

  Result<void> append_to(std::vector<std::pair<std::int64_t, Listing>>& listings) {
    group_by_symbol();
    const Disassembler disassembler = TRY(Disassembler::open(code_.elf().architecture()));
    for (const auto& [start, symbol] : symbols_)
      listings.emplace_back(symbol.size(), list_symbol(disassembler, symbol));
    return {};
  }

 private:
  using Symbols = std::map<std::uint64_t, Symbol>;  // by address

  void group_by_symbol() {
    std::vector<std::uint64_t> all;
    for (const auto& [at, sampled] : addresses_) all.push_back(at);
    const Symbols known = code_.symbols_at(std::move(all));
    for (const auto& [at, sampled] : addresses_) add_to_group(at, sampled, known);
  }

  void add_to_group(std::uint64_t at, const SampledCode& sampled, const Symbols& known) {
    const auto symbol = known.find(at);
    const bool has_symbol = symbol != known.end();
    FunctionRange range{};  // empty: nothing tells
    if (has_symbol)
      range = {symbol->second.start, symbol->second.start + symbol->second.size};
    else
      range = swept_.find(at, code_.functions()).value_or(range);
    SymbolCode& group = symbols_[range.begin];
    if (has_symbol) group.name = demangle(symbol->second.linker_name());
    if (range.end != 0) {
      group.start = range.begin;
      group.end = range.end;
    } else {
      // Begin at the first sampled instruction. Callers' addresses are
      // inside of an instruction, but the first sample of a function that was sampled itself is at the start
      // of one.
      group.start = group.samples.empty() ? at : std::min(group.start, at);
      group.end = std::max(group.end, at + kCodeBehind);
    }
    SampledCode& entry = group.samples[at];
    entry.location = sampled.location;
    entry.sum.self = saturating_add(entry.sum.self, sampled.sum.self);
    entry.sum.total = saturating_add(entry.sum.total, sampled.sum.total);
  }

  [[nodiscard]] Listing list_symbol(const Disassembler& disassembler, const SymbolCode& symbol) const {
    Listing listing;
    const std::string& function = view_.frames[frame_].name;
    listing.title = symbol.name.empty() ? "code without a symbol" : symbol.name;
    if (!symbol.name.empty() && symbol.name != function) listing.title = "inlined into " + listing.title;
    if (!code_.is_verified())
      listing.note = "the profile has no build id to compare: the file may be another one";
    auto bytes = code_.elf().data_at(symbol.start);
    bytes = bytes.first(
        std::min({bytes.size(), kMaxCodeBytes, static_cast<std::size_t>(symbol.end - symbol.start)}));
    if (bytes.empty()) listing.problem = "the file has no bytes there";
    const std::vector<Instruction> instructions = disassembler.disassemble(bytes, symbol.start);
    std::vector<std::uint64_t> targets;
    for (const Instruction& instruction : instructions) {
      if (instruction.target != 0) targets.push_back(instruction.target);
    }
    const Symbols known = code_.symbols_at(std::move(targets));
    for (const Instruction& instruction : instructions)
      listing.rows.push_back(list_instruction(instruction, symbol, known));
    keep_hot_rows(listing.rows);
    return listing;
  }

  [[nodiscard]] ListingRow list_instruction(const Instruction& instruction, const SymbolCode& symbol,
                                            const Symbols& known) const {
    ListingRow row{.number = instruction.address, .text = instruction.text};
    const auto target = known.find(instruction.target);
    // Jumps inside of the function go without saying.
    if (target != known.end() && target->second.start != symbol.start)
      row.text += fmt::format(" <{}>", demangle(target->second.linker_name()));
    auto sample = symbol.samples.lower_bound(instruction.address);
    const auto end = symbol.samples.lower_bound(instruction.address + instruction.size);
    for (; sample != end; ++sample) {
      row.sum.self = saturating_add(row.sum.self, sample->second.sum.self);
      row.sum.total = saturating_add(row.sum.total, sample->second.sum.total);
      row.place = place_of(view_, sample->second.location);
    }
    return row;
  }

  const ReportView& view_;
  std::uint32_t frame_;
  const MappedCode& code_;
  SweptFunctions swept_;
  std::vector<std::pair<std::uint64_t, SampledCode>> addresses_;
  std::map<std::uint64_t, SymbolCode> symbols_;  // by start
};

using FileKey = std::pair<StringIndex, StringIndex>;  // path and build id
using SampledFiles = std::map<FileKey, std::vector<SampledAddresses::const_iterator>>;

Listing list_problem(std::string problem) { return {.title = {}, .problem = std::move(problem)}; }

}  // namespace

std::vector<Listing> annotate_code(const ReportView& view, std::uint32_t frame) {
  const SampledAddresses addresses = sum_addresses(view, frame);
  SampledFiles files;
  for (auto it = addresses.begin(); it != addresses.end(); ++it) {
    if (it->first.first == kNoMapping) continue;
    const ProfileMapping& mapping = view.profile.mappings[it->first.first];
    files[{mapping.path, mapping.build_id}].push_back(it);
  }
  if (files.empty()) return {list_problem("the profile does not say which file the function is in")};
  std::vector<std::pair<std::int64_t, Listing>> listings;
  for (const auto& [file, samples] : files) {
    const auto code = MappedCode::open(view.profile, view.profile.mappings[samples.front()->first.first]);
    if (!code) {
      listings.emplace_back(0, list_problem(code.error().message));
      continue;
    }
    CodeFileListing listing(view, frame, *code);
    for (const auto& sample : samples)
      listing.add(view.profile.mappings[sample->first.first], sample->first.second, sample->second);
    if (auto listed = listing.append_to(listings); !listed)
      listings.emplace_back(0, list_problem(listed.error().message));
  }
  if (listings.empty()) return {list_problem("no sampled address is inside of the file's code")};
  std::stable_sort(listings.begin(), listings.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  std::vector<Listing> result;
  for (auto& [size, listing] : listings) {
    if (result.size() < kMaxListings) result.push_back(std::move(listing));
  }
  return result;
}

}  // namespace ddprof
