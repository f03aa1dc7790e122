#include "session/code_index.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "unwind/compile.hpp"

namespace ddprof {

const UnwindTable* CodeIndex::table(FileId id, const Process& process) {
  if (const auto known = tables_.find(id); known != tables_.end())
    return known->second ? &known->second->table() : nullptr;
  const std::shared_ptr<const CodeFile>& file = files_.file(id);
  if (!file->elf) return nullptr;
  auto compiled = compiler_.compile(id, file, process.user, rules_);
  if (!compiled) {
    unread_[id] = "unwind information: was not read in time for all samples";
    return nullptr;
  }
  unread_.erase(id);
  auto& table = tables_[id];
  if (!compiled->ok())
    unread_[id] = compiled->error().message;
  else if ((*compiled)->table.counters().unread > 0)
    unread_[id] =
        fmt::format("unwind information: too large to read with --max-memory {}", guard_.limits.mebibytes());
  if (!compiled->ok()) return nullptr;
  table = std::make_unique<CachedTable>();
  table->whole = std::move((*compiled)->table);
  if ((*compiled)->windows)
    table->large = std::make_unique<LargeTable>(file, *(*compiled)->windows, threads_, guard_, rules_, user_);
  return &table->table();
}

std::vector<std::string> CodeIndex::problems() const {
  constexpr std::size_t kMost = 16;  // lines of a summary
  std::vector<std::string> texts;
  const auto add = [&](FileId id, const std::string& problem) {
    const auto& file = files_.file(id);
    if (file != nullptr && !problem.empty() && texts.size() < kMost)
      texts.push_back(file->path + ": " + problem);
  };
  for (const auto& [id, problem] : unread_) add(id, problem);
  for (const auto& [id, table] : tables_) {
    if (table && table->large) add(id, table->large->problem());
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

bool CodeIndex::is_unread(FileId id) const {
  const auto& file = files_.file(id);
  const auto table = tables_.find(id);
  const LargeTable* large = table != tables_.end() && table->second ? table->second->large.get() : nullptr;
  if (large != nullptr && !large->problem().empty()) return true;
  return unread_.contains(id) || (file != nullptr && file->kind == CodeFile::Kind::opening);
}

std::vector<CodeMapping> CodeIndex::representatives() const {
  std::vector<CodeMapping> resolved;
  absl::flat_hash_set<std::pair<FileId, std::uint64_t>> known;  // by file and file offset
  for (const CodeMapping& mapping : representatives_) {
    resolved.push_back(files_.resolved(mapping));
    if (!known.emplace(resolved.back().file, mapping.file_offset).second) resolved.pop_back();
  }
  return resolved;
}

void CodeIndex::settle(AggregatedProfile& profile) const {
  std::vector<Frame> frames = profile.frames;
  for (Frame& frame : frames) frame = files_.resolved(frame);
  if (frames != profile.frames) profile = with_frames(profile, frames);
}

Module CodeIndex::make_module(const CodeMapping& mapping, const Process& process) {
  Module module;
  module.start = mapping.start;
  module.end = mapping.end;
  module.bias = mapping.bias;
  module.file = mapping.file;
  if (mapping.file == FileId::none) return module;
  const CodeFile& file = *files_.file(mapping.file);
  module.is_generated = file.kind == CodeFile::Kind::jit;
  module.table =
      file.kind == CodeFile::Kind::jit ? generated_.table(mapping.file) : table(mapping.file, process);
  if (file.elf) {
    // That of the vdso of i386 is a function.
    if (file.kind == CodeFile::Kind::elf) module.entry = file.elf->entry();
    auto image = file.elf->image();
    if (mapping.file_offset < image.size()) {
      auto size = std::min<std::uint64_t>(mapping.end - mapping.start, image.size() - mapping.file_offset);
      module.code = image.subspan(mapping.file_offset, size);
    }
  }
  return module;
}

void CodeIndex::add_representatives(const Process& process) {
  for (const CodeMapping& mapping : process.space->mappings()) {
    const auto [known, is_new] =
        represented_.try_emplace({mapping.file, mapping.file_offset}, representatives_.size());
    if (is_new) representatives_.push_back(mapping);
    CodeMapping& representative = representatives_[known->second];
    // The code of a JIT compiler grows.
    if (representative.start == mapping.start) representative.end = std::max(representative.end, mapping.end);
  }
}

// All at once: the thread that compiles them goes on while this one waits for the first.
void CodeIndex::post_tables(const Process& process) {
  for (const CodeMapping& mapping : process.space->mappings()) {
    const FileId id = files_.resolved(mapping.file);
    const auto& file = files_.file(id);
    if (file != nullptr && file->elf && !tables_.contains(id)) compiler_.post(id, file, process.user);
  }
}

void CodeIndex::fill(CachedMap& cached, const Process& process) {
  const std::uint64_t finished = threads_.finished();
  files_.wait_until_open(*process.space, process.user);
  post_tables(process);
  cached.map = std::make_unique<ModuleMap>();
  cached.space = process.space;
  cached.finished.reset();
  FileId code = FileId::none;
  FileId dump = FileId::none;
  for (const CodeMapping& mapped : process.space->mappings()) {
    const CodeMapping mapping = files_.resolved(mapped);
    cached.map->add(make_module(mapping, process));
    if (mapping.file == FileId::none) continue;
    if (is_unread(mapping.file) && !tables_.contains(mapping.file)) cached.finished = finished;
    const CodeFile::Kind kind = files_.file(mapping.file)->kind;
    if (kind == CodeFile::Kind::jit) code = mapping.file;
    if (kind == CodeFile::Kind::jit_dump) dump = mapping.file;
  }
  if (code == FileId::none || dump == FileId::none) return;
  cached.generated = code;
  generated_.add(code, dump);
}

bool CodeIndex::is_ready(const Process& process) {
  if (const auto known = maps_.find(process.generation); known != maps_.end() && known->second.map)
    return true;
  if (!files_.open_first(*process.space, process.user)) return false;
  post_tables(process);
  const auto& mappings = process.space->mappings();
  return std::none_of(mappings.begin(), mappings.end(), [&](const CodeMapping& mapping) {
    return compiler_.is_pending(files_.resolved(mapping.file), process.user);
  });
}

// Caches of the unwinder know their code without rules.
void CodeIndex::forget_maps_with_late_windows() {
  bool has_late = false;
  for (const auto& [id, table] : tables_) {
    if (!table || !table->large || !table->large->late_since()) continue;
    if (*table->large->late_since() == threads_.finished()) continue;
    table->large->forget_late();
    has_late = true;
  }
  if (!has_late) return;
  for (auto& [generation, cached] : maps_) cached.map.reset();
}

const ModuleMap& CodeIndex::modules(const Process& process) {
  user_ = process.user;
  if (threads_.finished() != finished_jobs_) {
    finished_jobs_ = threads_.finished();
    forget_maps_with_late_windows();
  }
  CachedMap& cached = maps_[process.generation];
  if (!cached.map || (cached.finished && *cached.finished != threads_.finished())) fill(cached, process);
  if (!std::exchange(cached.was_used, true)) add_representatives(process);
  if (cached.generated != FileId::none &&
      generated_.refresh(cached.generated, process.user, monotonic_now())) {
    forget_generated_maps();
    fill(cached, process);
  }
  return *cached.map;
}

// Their modules point to tables that have been replaced.
void CodeIndex::forget_generated_maps() {
  for (auto& [generation, cached] : maps_) {
    if (cached.generated != FileId::none) cached.map.reset();
  }
}

void CodeIndex::forget_unused() {
  absl::erase_if(maps_,
                 [](const auto& entry) { return !entry.second.was_used || entry.second.space.expired(); });
  for (auto& entry : maps_) entry.second.was_used = false;
  absl::erase_if(tables_, [this](const auto& entry) { return !files_.files().contains(entry.first); });
  absl::erase_if(unread_, [this](const auto& entry) { return !files_.files().contains(entry.first); });
  compiler_.forget_except(files_.files());
  representatives_.clear();
  represented_.clear();
  if (generated_.forget_unused()) forget_generated_maps();
}

void CodeIndex::forget_all() {
  maps_.clear();
  tables_.clear();
}

std::size_t CodeIndex::table_bytes() const {
  std::size_t bytes = generated_.table_bytes();
  for (const auto& [id, table] : tables_) {
    if (table) bytes += table->whole.bytes() + (table->large ? table->large->bytes() : 0);
  }
  return bytes;
}

}  // namespace ddprof
