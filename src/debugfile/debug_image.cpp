#include "debugfile/debug_image.hpp"

#include <elf.h>

#include <utility>

namespace ddprof {

Result<DebugImage> open_debug_image(PatientOpener& opener, const FileRequest& request) {
  ForeignFile opened = TRY(opener.open(request));
  MappedRegion region = TRY(map_foreign_file(opened));
  auto file = ElfFile::parse(region.bytes());
  if (!file)
    return make_error(file.error().code, "read {}{}: {}", request.root, request.path, file.error().message);
  return DebugImage{request.root, request.path,      opened.device,   opened.inode,
                    opened.owner, std::move(region), std::move(*file)};
}

bool has_debug_info(const ElfFile& file) {
  const auto section = file.find_debug_section(".debug_info");
  return section && !section->data.empty();
}

bool has_symbol_table(const ElfFile& file) {
  const auto section = file.find_section(".symtab");
  return section && section->type == SHT_SYMTAB && !section->data.empty();
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string base_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace ddprof
