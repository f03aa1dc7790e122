#include "session/frame_names.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/turns.hpp"
#include "process/file_provider.hpp"
#include "profile/marker.hpp"
#include "session/jit_tables.hpp"
#include "symbol/demangle.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxCachedNames = 200'000;
constexpr std::size_t kMaxSymbolBytes = 16U << 20U;

std::string place_in(std::string_view name, std::uint64_t address) {
  return fmt::format("{}+{:#x}", name, address);
}

// Piece by piece: the whole text takes several times the memory of what it says.
Result<JitNames> read_jit_names(PatientOpener& opener, Pid pid, const ReadLimits& limits) {
  constexpr std::uint64_t kMaxListBytes = 128U << 20U;
  constexpr std::size_t kWindowBytes = 256U << 10U;
  const JitFile file = TRY(JitFile::open_jit_names(opener, pid));
  const std::uint64_t file_bytes = TRY(file.size());
  if (file_bytes > kMaxListBytes)
    return make_error(ErrorCode::exhausted, "read {}: larger than {} bytes", file.path(), kMaxListBytes);
  JitNames::Builder builder(limits);
  std::string window;
  for (std::uint64_t offset = 0; offset < file_bytes;) {
    window.resize(std::min<std::uint64_t>(kWindowBytes, file_bytes - offset));
    const std::size_t count = TRY(file.read(offset, std::as_writable_bytes(std::span(window))));
    const std::size_t taken = builder.add(std::string_view(window).substr(0, count));
    // A line that fills a window is none of a compiler's; one at the end is still being written.
    offset += taken > 0 ? taken : count;
    if (count < window.size() || count == 0) break;
  }
  return std::move(builder).build();
}

}  // namespace

void FrameNames::use_generated_code(const CodeFiles& files, std::span<const CodeMapping> mappings) {
  dumps_.clear();
  files.for_each([this](FileId, const std::shared_ptr<const CodeFile>& file) {
    if (file->kind == CodeFile::Kind::jit_dump) dumps_[to_int(file->pid)] = file;
  });
  generated_.clear();
  for (const CodeMapping& mapping : mappings) {
    const auto& file = files[mapping.file];
    if (file != nullptr && file->kind == CodeFile::Kind::jit) generated_.push_back(mapping);
  }
  std::sort(generated_.begin(), generated_.end(), [](const CodeMapping& left, const CodeMapping& right) {
    return std::pair(left.file, left.start) < std::pair(right.file, right.start);
  });
}

FrameNames::Symbols& FrameNames::generated_symbols(FileId id, const CodeFile& file) {
  Symbols& symbols = symbols_[to_int(id)];
  if (symbols.is_fresh) return symbols;
  symbols.is_fresh = true;
  symbols.problem.clear();
  const auto read = guard_.read(file, FileUse::generated_code, [&] { return read_generated(symbols, file); });
  if (!read) symbols = {.problem = read.error().message, .is_fresh = true};
  if (!symbols.jit_map) symbols.jit_map.emplace();
  return symbols;
}

Result<void> FrameNames::read_generated(Symbols& symbols, const CodeFile& file) {
  auto map = read_jit_names(opener_, file.pid, guard_.limits);
  if (!map && map.error().code != ErrorCode::not_found) symbols.problem = map.error().message;
  symbols.jit_map = std::move(map).value_or({});
  if (const std::uint64_t unread = symbols.jit_map->unread_lines(); unread > 0)
    symbols.problem = fmt::format("perf map: {} of its lines are too many to read with --max-memory {}",
                                  unread, guard_.limits.mebibytes());
  if (auto dump = dumps_.find(to_int(file.pid)); dump != dumps_.end()) {
    if (!symbols.jit_dump) symbols.jit_dump = std::make_unique<JitDump>(guard_.limits);
    std::ignore =
        read_growth(*dump->second->dump, *symbols.jit_dump);  // what was read before it broke is known
  }
  return {};
}

std::optional<FrameNames::Name> FrameNames::jit_name(std::uint64_t address, FileId id, const CodeFile& file) {
  const Symbols& symbols = generated_symbols(id, file);
  std::optional<Name> name;
  const auto take = [&](const SourceCall& call) {
    name = Name{demangle(call.name), std::string(call.name), true, std::string(call.file), call.line};
  };
  if (symbols.jit_dump && symbols.jit_dump->find(address, take)) return name;
  if (auto symbol = symbols.jit_map->find(address))
    name = Name{std::string(symbol->name), std::string(symbol->name), true};
  return name;
}

// Nothing tells where functions begin in code that a JIT compiler does not list.
std::string FrameNames::mapping_name(const Frame& frame) const {
  const auto is_behind = [](const Frame& wanted, const CodeMapping& mapping) {
    return std::pair(wanted.file, wanted.address) < std::pair(mapping.file, mapping.start.value);
  };
  const auto after = std::upper_bound(generated_.begin(), generated_.end(), frame, is_behind);
  const bool is_inside = after != generated_.begin() && std::prev(after)->file == frame.file &&
                         std::prev(after)->contains({frame.address});
  return place_in(kGeneratedCodePath, is_inside ? std::prev(after)->start.value : frame.address);
}

void FrameNames::read_functions(Symbols& symbols, const CodeFile& file) {
  if (std::exchange(symbols.has_read_functions, true) || !file.elf || !file.is_as_opened()) return;
  auto read = guard_.read(file, FileUse::functions, [&]() -> Result<Functions> {
    return Functions{FunctionRanges(*file.elf, guard_.limits), StartFunctions(*file.elf, file.base_name()),
                     SweptFunctions(*file.elf)};
  });
  if (read)
    symbols.functions = *std::move(read);
  else if (symbols.problem.empty())
    symbols.problem = read.error().message;
}

std::optional<std::string> FrameNames::function_name(std::uint64_t address, Symbols& symbols,
                                                     const CodeFile& file) {
  read_functions(symbols, file);
  if (!symbols.functions) return std::nullopt;
  const auto range = symbols.functions->swept.find(address, symbols.functions->ranges);
  if (!range) return std::nullopt;
  const std::string_view name = symbols.functions->starts.name_of(*file.elf, range->begin, range->end);
  return name.empty() ? place_in(file.base_name(), range->begin) : std::string(name);
}

std::string FrameNames::problem(FileId id) const {
  auto known = symbols_.find(to_int(id));
  return known != symbols_.end() ? known->second.problem : "";
}

FrameNames::Name FrameNames::kernel_name(std::uint64_t address) {
  if (auto symbol = kernel_.find(address)) {
    std::string name(symbol->name);
    return {name, name, true};
  }
  std::string name = place_in("[kernel]", address);
  return {name, name};
}

FrameNames::Name FrameNames::place_name(const Frame& frame, const CodeFile& file) {
  std::optional<std::string> place;
  if (is_enabled_) place = function_name(frame.address, symbols_[to_int(frame.file)], file);
  if (!place) place = place_in(file.base_name(), frame.address);
  return {*place, *place};
}

void FrameNames::name_in_file(std::vector<Frame> frames, const CodeFile& file) {
  std::sort(frames.begin(), frames.end(),
            [](const Frame& left, const Frame& right) { return left.address < right.address; });
  std::vector<std::uint64_t> addresses;
  for (const Frame& frame : frames) addresses.push_back(frame.address);
  std::vector<Symbol> found(frames.size());
  if (is_enabled_ && file.elf && file.is_as_opened()) {
    auto read = guard_.read(file, FileUse::symbols,
                            [&] { return find_symbols(*file.elf, addresses, guard_.limits); });
    if (read)
      found = *std::move(read);
    else
      symbols_[to_int(frames.front().file)].problem = read.error().message;
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::string linker_name = found[i].linker_name();
    names_[frames[i]] =
        found[i].name.empty() ? place_name(frames[i], file) : Name{demangle(linker_name), linker_name, true};
    rest_point();
  }
  file.image.drop_pages();
}

FrameNames::Name FrameNames::generated_name(const Frame& frame, const CodeFile* file) {
  if (is_enabled_ && file != nullptr) {
    if (auto name = jit_name(frame.address, frame.file, *file)) return *std::move(name);
  }
  const std::string place = mapping_name(frame);
  return {place, place};
}

FrameNames::Name FrameNames::make_name(const Frame& frame, const CodeFile* file) {
  if (frame.kind == FrameKind::user) return generated_name(frame, file);
  if (frame.kind == FrameKind::kernel) return kernel_name(frame.address);
  std::string name = marker_name(frame, file != nullptr ? file->base_name() : "");
  return {name, name};
}

namespace {

// Whether it may have a symbol there.
bool is_in_file(const Frame& frame, const CodeFile* file) {
  return frame.kind == FrameKind::user && file != nullptr && file->kind != CodeFile::Kind::jit;
}

}  // namespace

void FrameNames::name_all(std::span<const Frame> frames, const CodeFiles& files) {
  absl::flat_hash_map<std::uint32_t, std::vector<Frame>> by_file;
  for (const Frame& frame : frames) {
    const CodeFile* file = files[frame.file].get();
    if (!is_in_file(frame, file)) {
      name(frame, file);
      rest_point();
    } else if (!names_.contains(frame)) {
      by_file[to_int(frame.file)].push_back(frame);
    }
  }
  for (auto& [id, unnamed] : by_file) name_in_file(std::move(unnamed), *files[static_cast<FileId>(id)]);
}

const FrameNames::Name& FrameNames::name(const Frame& frame, const CodeFile* file) {
  if (file != nullptr && file->kind == CodeFile::Kind::jit) return unstable_ = make_name(frame, file);
  if (auto known = names_.find(frame); known != names_.end()) return known->second;
  if (file == nullptr || !is_in_file(frame, file))
    return names_.emplace(frame, make_name(frame, file)).first->second;
  name_in_file({frame}, *file);
  return names_[frame];
}

void FrameNames::trim(const CodeFiles& files) {
  if (names_.size() > kMaxCachedNames) names_.clear();
  absl::erase_if(names_, [&](const auto& entry) {
    return entry.first.file != FileId::none && !files.contains(entry.first.file);
  });
  std::size_t bytes = 0;
  absl::erase_if(symbols_, [&](auto& entry) {
    Symbols& symbols = entry.second;
    symbols.jit_map.reset();  // read anew
    symbols.is_fresh = false;
    if (symbols.functions)
      bytes += symbols.functions->ranges.memory_bytes() + symbols.functions->swept.memory_bytes();
    if (symbols.jit_dump) bytes += symbols.jit_dump->memory_bytes();
    return bytes > kMaxSymbolBytes || !files.contains(static_cast<FileId>(entry.first));
  });
}

}  // namespace ddprof
