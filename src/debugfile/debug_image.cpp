#include "debugfile/debug_image.hpp"

#include <elf.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

namespace ddprof {

Result<DebugImage> open_debug_image(PatientOpener& opener, const std::string& root, const std::string& path) {
  const UniqueFd fd = TRY(opener.open(root, path));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "stat " + root + path);
  MappedRegion region = TRY(MappedRegion::map_file(fd.get()));
  auto file = ElfFile::parse(region.bytes());
  if (!file) return make_error(file.error().code, "read {}{}: {}", root, path, file.error().message);
  return DebugImage{root, path, status.st_dev, status.st_ino, std::move(region), std::move(*file)};
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
