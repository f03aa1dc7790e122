#include "session/code_index.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "unwind/compile.hpp"

namespace ddprof {

const UnwindTable* CodeIndex::table(FileId id) {
  std::size_t index = to_int(id);
  if (index >= tables_.size()) {
    tables_.resize(index + 1);
    is_compiled_.resize(index + 1);
  }
  if (!is_compiled_[index]) {
    is_compiled_[index] = true;
    const CodeFile& file = *files_.file(id);
    if (file.elf) {
      tables_[index] = std::make_unique<UnwindTable>(compile_unwind_table(*file.elf, rules_));
      file.image.drop_pages();  // .eh_frame is not needed any more
    }
  }
  return tables_[index].get();
}

Module CodeIndex::make_module(const CodeMapping& mapping) {
  Module module;
  module.start = mapping.start;
  module.end = mapping.end;
  module.bias = mapping.bias;
  module.file = mapping.file;
  if (mapping.file == FileId::none) return module;
  const CodeFile& file = *files_.file(mapping.file);
  module.table = file.kind == CodeFile::Kind::jit ? generated_.table(mapping.file) : table(mapping.file);
  if (file.elf) {
    module.entry = file.elf->entry();
    auto image = file.elf->image();
    if (mapping.file_offset < image.size()) {
      auto size = std::min<std::uint64_t>(mapping.end - mapping.start, image.size() - mapping.file_offset);
      module.code = image.subspan(mapping.file_offset, size);
    }
  }
  return module;
}

void CodeIndex::add_representative(const CodeMapping& mapping) {
  if (is_represented_.try_emplace({to_int(mapping.file), mapping.file_offset}, true).second) {
    representatives_.push_back(mapping);
  }
}

void CodeIndex::fill(CachedMap& cached, const Process& process) {
  cached.map = std::make_unique<ModuleMap>();
  FileId code = FileId::none;
  FileId dump = FileId::none;
  for (const CodeMapping& mapping : process.space->mappings()) {
    cached.map->add(make_module(mapping));
    add_representative(mapping);
    if (mapping.file == FileId::none) continue;
    const CodeFile::Kind kind = files_.file(mapping.file)->kind;
    if (kind == CodeFile::Kind::jit) code = mapping.file;
    if (kind == CodeFile::Kind::jit_dump) dump = mapping.file;
  }
  if (code == FileId::none || dump == FileId::none) return;
  cached.generated = code;
  generated_.add(code, dump);
}

const ModuleMap& CodeIndex::modules(const Process& process) {
  CachedMap& cached = maps_[process.generation];
  cached.was_used = true;
  if (!cached.map) fill(cached, process);
  if (cached.generated != FileId::none && generated_.refresh(cached.generated, monotonic_now())) {
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
  absl::erase_if(maps_, [](const auto& entry) { return !entry.second.was_used; });
  for (auto& entry : maps_) entry.second.was_used = false;
  if (generated_.forget_unused()) forget_generated_maps();
}

void CodeIndex::forget_all() {
  maps_.clear();
  tables_.clear();
  is_compiled_.clear();
}

std::size_t CodeIndex::table_bytes() const {
  std::size_t bytes = generated_.table_bytes();
  for (const auto& table : tables_) bytes += table ? table->bytes() : 0;
  return bytes;
}

}  // namespace ddprof
