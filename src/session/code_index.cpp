#include "session/code_index.hpp"

#include <algorithm>

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
  module.table = table(mapping.file);
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

const ModuleMap& CodeIndex::modules(const Process& process) {
  CachedMap& cached = maps_[process.generation];
  cached.was_used = true;
  if (!cached.map) {
    cached.map = std::make_unique<ModuleMap>();
    for (const CodeMapping& mapping : process.space->mappings()) {
      cached.map->add(make_module(mapping));
      add_representative(mapping);
    }
  }
  return *cached.map;
}

void CodeIndex::forget_unused() {
  absl::erase_if(maps_, [](const auto& entry) { return !entry.second.was_used; });
  for (auto& entry : maps_) entry.second.was_used = false;
}

std::size_t CodeIndex::table_bytes() const {
  std::size_t bytes = 0;
  for (const auto& table : tables_) bytes += table ? table->bytes() : 0;
  return bytes;
}

}  // namespace ddprof
