#include "session/frame_names.hpp"

#include <utility>

#include "process/jit_files.hpp"
#include "profile/marker.hpp"
#include "symbol/demangle.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxCachedNames = 200'000;
constexpr std::size_t kMaxSymbolBytes = 16U << 20U;

std::string readable_offset(const CodeFile* file, std::uint64_t address) {
  if (file == nullptr || file->kind == CodeFile::Kind::jit)
    return fmt::format("[anonymous code]+{:#x}", address);
  return fmt::format("{}+{:#x}", file->base_name(), address);
}

PerfMap read_perf_map(Pid pid) {
  constexpr std::size_t kMaxPerfMapBytes = 128U << 20U;
  const auto file = JitFile::open_perf_map(pid);
  if (!file) return {};
  const auto text = file->read_all(kMaxPerfMapBytes);
  return text ? PerfMap::parse(*text) : PerfMap{};
}

}  // namespace

FrameNames::Symbols& FrameNames::symbols_of(FileId id, const CodeFile& file) {
  auto [entry, is_new] = symbols_.try_emplace(to_int(id));
  if (is_new && file.elf && file.is_as_opened()) {
    entry->second.table = SymbolTable::build(*file.elf);
    file.image.drop_pages();
  }
  if (is_new && file.kind == CodeFile::Kind::jit) entry->second.jit = read_perf_map(file.pid);
  return entry->second;
}

bool FrameNames::has_symbols(FileId id) const {
  auto known = symbols_.find(to_int(id));
  return known != symbols_.end() && known->second.table && !known->second.table->empty();
}

FrameNames::Name FrameNames::kernel_name(std::uint64_t address) {
  if (auto symbol = kernel_.find(address)) {
    std::string name(symbol->name);
    return {name, name, true};
  }
  std::string name = fmt::format("[kernel]+{:#x}", address);
  return {name, name};
}

FrameNames::Name FrameNames::user_name(const Frame& frame, const CodeFile* file) {
  if (is_enabled_ && file != nullptr) {
    Symbols& symbols = symbols_of(frame.file, *file);
    if (symbols.table) {
      if (auto symbol = symbols.table->find(frame.address))
        return {demangle(symbol->name), std::string(symbol->name), true};
    }
    if (symbols.jit) {
      if (auto symbol = symbols.jit->find(frame.address))
        return {std::string(symbol->name), std::string(symbol->name), true};
    }
  }
  std::string name = readable_offset(file, frame.address);
  return {name, name};
}

FrameNames::Name FrameNames::make_name(const Frame& frame, const CodeFile* file) {
  if (frame.kind == FrameKind::user) return user_name(frame, file);
  if (frame.kind == FrameKind::kernel) return kernel_name(frame.address);
  std::string name = marker_name(frame, file != nullptr ? file->base_name() : "");
  return {name, name};
}

const FrameNames::Name& FrameNames::name(const Frame& frame, const CodeFile* file) {
  if (file != nullptr && file->kind == CodeFile::Kind::jit) return unstable_ = make_name(frame, file);
  if (auto known = names_.find(frame); known != names_.end()) return known->second;
  return names_.emplace(frame, make_name(frame, file)).first->second;
}

void FrameNames::trim() {
  if (names_.size() > kMaxCachedNames) names_.clear();
  std::size_t bytes = 0;
  absl::erase_if(symbols_, [&](const auto& entry) {
    if (!entry.second.table) return true;  // a JIT's map is read anew
    bytes += entry.second.table->memory_bytes();
    return bytes > kMaxSymbolBytes;
  });
}

}  // namespace ddprof
