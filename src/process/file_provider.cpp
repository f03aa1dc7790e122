#include "process/file_provider.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <optional>
#include <utility>

#include "elf/elf_file.hpp"

namespace ddprof {

namespace {

bool is_recorded_file(int fd, const FileIdentity& identity) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  if (identity.inode == 0) return true;  // told by build id below
  // Overlay and btrfs report another device to stat than to the kernel's own records: the inode decides.
  return status.st_ino == identity.inode;
}

std::optional<MappedRegion> map_candidate(int fd, const FileIdentity& identity) {
  if (!is_recorded_file(fd, identity)) return std::nullopt;
  auto region = MappedRegion::map_file(fd);
  if (!region) return std::nullopt;
  if (!identity.build_id.empty()) {
    auto elf = ElfFile::parse(region->bytes());
    if (!elf || elf->build_id() != identity.build_id) return std::nullopt;
  }
  return std::move(region).value();
}

}  // namespace

Result<MappedRegion> ProcFileProvider::open(Pid pid, Address mapping_start, Address mapping_end,
                                            const FileIdentity& identity) {
  const std::string process = fmt::format("/proc/{}", to_int(pid));
  const std::array<std::pair<std::string, std::string>, 3> candidates = {{
      {process + "/root", identity.path},
      {"", fmt::format("{}/map_files/{:x}-{:x}", process, mapping_start.value, mapping_end.value)},
      {"", identity.path},
  }};
  std::optional<Error> hang;
  for (const auto& [root, path] : candidates) {
    auto fd = opener_.open(root, path);
    if (!fd && fd.error().code == ErrorCode::exhausted) hang = fd.error();
    if (!fd) continue;
    if (auto region = map_candidate(fd->get(), identity)) return std::move(*region);
  }
  if (hang) return *std::move(hang);
  return make_error(ErrorCode::not_found, "open {}: gone or replaced since it was mapped", identity.path);
}

}  // namespace ddprof
