#include "session/unseen_allocator.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>

namespace ddprof {

namespace {

bool is_loaded_by_ld_so(const ElfFile& program) {
  const auto segments = program.segments();
  return std::any_of(segments.begin(), segments.end(),
                     [](const ElfSegment& segment) { return segment.type == PT_INTERP; });
}

// For all modules of the process: what only it sees itself is no dynamic symbol.
bool defines_malloc(const CodeFile& file) {
  if (!file.elf) return false;
  bool is_defined = false;
  file.elf->for_each_symbol(SymbolTableKind::dynsym, [&](const ElfSymbol& symbol) {
    is_defined = is_defined || (symbol.section_index != SHN_UNDEF && symbol.name == "malloc");
  });
  return is_defined;
}

bool is_library_of(const CodeFile& file, std::string_view name) { return file.base_name().starts_with(name); }

}  // namespace

std::string why_unseen(const CodeFile& program, std::span<const std::shared_ptr<const CodeFile>> files) {
  if (!program.elf) return {};
  const std::string name = program.base_name();
  if (!is_loaded_by_ld_so(*program.elf)) return name + " is static";
  if (defines_malloc(program)) return name + " has an allocator of its own";
  if (std::none_of(files.begin(), files.end(),
                   [](const auto& file) { return is_library_of(*file, "libddprof"); }))
    return "libddprof.so was not loaded into " + name;
  const auto allocator = std::find_if(files.begin(), files.end(), [&](const auto& file) {
    return !is_library_of(*file, "libddprof") && !is_library_of(*file, "libc.") &&
           !is_library_of(*file, "ld-") && defines_malloc(*file);
  });
  if (allocator == files.end()) return {};
  return fmt::format("those of {} do not pass libddprof.so, unless there were few",
                     (*allocator)->base_name());
}

}  // namespace ddprof
