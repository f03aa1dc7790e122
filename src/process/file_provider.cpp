#include "process/file_provider.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <optional>

#include "base/unique_fd.hpp"
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

std::optional<MappedRegion> open_candidate(const std::string& path, const FileIdentity& identity) {
  // O_NONBLOCK: a path that has become a FIFO must not hang us.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open() || !is_recorded_file(fd.get(), identity)) return std::nullopt;
  auto region = MappedRegion::map_file(fd.get());
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
  const std::array candidates = {
      fmt::format("/proc/{}/root{}", to_int(pid), identity.path),
      fmt::format("/proc/{}/map_files/{:x}-{:x}", to_int(pid), mapping_start.value, mapping_end.value),
      identity.path,
  };
  for (const std::string& candidate : candidates) {
    if (auto region = open_candidate(candidate, identity)) return std::move(*region);
  }
  return make_error(ErrorCode::not_found, "open {}: gone or replaced since it was mapped", identity.path);
}

}  // namespace ddprof
