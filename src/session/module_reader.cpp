#include "session/module_reader.hpp"

#include <algorithm>
#include <utility>

namespace ddprof {

namespace {

Binary binary_of(const CodeFile& file) {
  return {.file = &*file.elf,
          .build_id = file.build_id,
          .path = file.path,
          .root = file.root ? file.root->path() : "",
          .owner = file.owner,
          .rights = file.rights};
}

// How often pages that were read are given back: a debug file is often larger than what we may hold.
constexpr std::size_t kUnitsBetweenDrops = 256;

}  // namespace

ModuleReader::ModuleReader(std::shared_ptr<const CodeFile> file, DebugFileFinder& finder,
                           const ReadLimits& limits)
    : file_(std::move(file)), files_(finder, binary_of(*file_), limits), go_budget_(limits), limits_(limits) {
  if (!file_->is_as_opened()) {
    info_problem_ = "written over while it was profiled: what it says now is not believed";
    return;
  }
  if (const ElfFile* found = files_.with_debug_info(); found != nullptr) {
    needs_scratch_ =
        limits.scratch == nullptr && DebugInfo::uncompressed_bytes(*found) > WorkBudget(limits).bytes_left();
    auto opened = DebugInfo::open(*found, files_, limits);
    if (opened) {
      info_ = *std::move(opened);
    } else {
      info_problem_ = opened.error().message;
    }
  }
  if (!info_) go_lines_ = GoLines::find(*file_->elf);
  if (const ElfFile* found = files_.with_symbol_table(); found != nullptr && !is_own(found)) symbols_ = found;
  drop_pages();
}

std::vector<Symbol> ModuleReader::read_symbols(std::span<const std::uint64_t> addresses) {
  if (symbols_ != nullptr) {
    if (auto found = find_symbols(*symbols_, addresses, limits_))
      return *std::move(found);
    else if (info_problem_.empty())
      info_problem_ = found.error().message;
    symbols_ = nullptr;
  }
  return std::vector<Symbol>(addresses.size());
}

void ModuleReader::take_symbol(std::uint64_t address, const Symbol& symbol, const DebugInfo::Take& take) {
  const auto take_calls = [&](std::span<const SourceCall> calls) { take(address, calls); };
  if (go_lines_ && go_lines_->find(address, take_calls, &go_budget_)) return;
  if (symbol.name.empty()) return take(address, {});
  const std::string name = symbol.linker_name();
  const SourceCall call{.linker_name = name, .name = name};
  take(address, {&call, 1});
}

std::size_t ModuleReader::read(std::span<const std::uint64_t> addresses, const DebugInfo::Take& take,
                               const DebugInfo::KeepGoing& keep_going) {
  const std::vector<Symbol> symbols = read_symbols(addresses);
  std::vector<bool> is_taken(
      addresses.size());  // units lie across each other: the order is not that of addresses
  const auto take_calls = [&](std::uint64_t address, std::span<const SourceCall> calls) {
    const auto at = static_cast<std::size_t>(std::lower_bound(addresses.begin(), addresses.end(), address) -
                                             addresses.begin());
    is_taken[at] = true;
    std::vector<SourceCall> named(calls.begin(), calls.end());
    // As with a file that has its symbols itself: they know parts of functions that debug information does
    // not.
    const std::string name = symbols[at].linker_name();
    if (!name.empty() && !named.empty()) named.back().linker_name = named.back().name = name;
    take(address, named);
  };
  go_budget_.refill();
  std::size_t units = 0;
  const auto keep_small = [&] {
    if (++units % kUnitsBetweenDrops == 0) drop_pages();
    return keep_going();
  };
  const std::size_t done = info_ ? info_->find(addresses, take_calls, keep_small) : addresses.size();
  for (std::size_t index = 0; index < done; ++index) {
    if (!is_taken[index]) take_symbol(addresses[index], symbols[index], take);
  }
  drop_pages();
  return done;
}

std::string ModuleReader::description() const {
  const DebugImage* separate = files_.separate();
  const std::string place = separate != nullptr ? " in " + separate->place() : "";
  if (info_) return "debug information" + (is_own(files_.with_debug_info()) ? "" : place);
  if (go_lines_) return "the table of Go's runtime";
  if (symbols_ == nullptr) return "";
  return files_.symbol_origin() == SymbolOrigin::mini_debug_info ? "symbols in .gnu_debugdata"
                                                                 : "symbols" + place;
}

std::string ModuleReader::problem() const {
  if (!info_problem_.empty()) return info_problem_;
  if (info_ && !info_->problem().empty()) return std::string(info_->problem());
  return files_.problem();
}

std::size_t ModuleReader::memory_bytes() const {
  return files_.memory_bytes() + (info_ ? info_->memory_bytes() : 0);
}

void ModuleReader::drop_pages() const {
  file_->image.drop_pages();
  if (const DebugImage* separate = files_.separate(); separate != nullptr) separate->region.drop_pages();
  if (info_) info_->drop_pages();
}

}  // namespace ddprof
