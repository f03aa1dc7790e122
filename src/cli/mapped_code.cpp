#include "cli/mapped_code.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

Result<MappedRegion> map_plain_file(const std::string& path) {
  if (!path.starts_with('/'))
    return make_error(ErrorCode::not_found, "{} is not a file", path.empty() ? "[no path]" : path);
  // A profile is free to name a pipe or a device.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open()) return errno_error(errno, "open " + path);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "stat " + path);
  if (!S_ISREG(status.st_mode)) return make_error(ErrorCode::unsupported, "{} is not a plain file", path);
  return MappedRegion::map_file(fd.get());
}

}  // namespace

Result<MappedCode> MappedCode::open(const Profile& profile, const ProfileMapping& mapping) {
  const std::string path(profile.text(mapping.path));
  MappedRegion image = TRY(map_plain_file(path));
  auto elf = ElfFile::parse(image.bytes());
  if (!elf) return make_error(ErrorCode::corrupt, "{} is not a program that can be read", path);
  const std::string_view wanted = profile.text(mapping.build_id);
  const std::string found = elf->build_id().hex();
  // Go's own build ids and other words are not hexadecimal numbers of a note: they cannot be compared.
  const bool is_comparable =
      !wanted.empty() && wanted.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (is_comparable && found != wanted) {
    return make_error(ErrorCode::not_found, "{} is not the file that was profiled: build id {}, not {}", path,
                      found.empty() ? "none" : found, wanted);
  }
  return MappedCode(std::move(image), std::move(*elf), is_comparable);
}

std::optional<std::uint64_t> elf_address(const ElfFile& elf, const ProfileMapping& mapping, Address address) {
  if (address < mapping.start || address >= mapping.limit) return std::nullopt;
  return elf.vaddr_of_offset(address - mapping.start + mapping.file_offset);
}

}  // namespace ddprof
