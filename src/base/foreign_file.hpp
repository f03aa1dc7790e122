#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "base/user_rights.hpp"

namespace ddprof {

// A file that another user may have made, or may only have named.
struct FileRequest {
  // Where `path` leads, and what may stand in its way.
  enum class Links : std::uint8_t {
    followed,  // below the root, wherever they lead
    refused,   // none at all: the kernel's own names of mapped files hold none
    last_refused,
    of_kernel,  // a link in /proc/PID, which leads where no path does
  };

  std::string path;
  std::string root{};  // below which: "/proc/123/root"; empty: as we see it
  Links links = Links::followed;
  std::optional<UserRights> rights{};   // with which; none: ours
  std::uint64_t device = 0, inode = 0;  // it must be this file; 0: any
  // Bytes that may be copied into memory of a file that a program of another user serves (FUSE), and could
  // stop to serve while we read. 0: such a file is refused.
  std::size_t max_copied_bytes = 0;
  std::string mounts = "/proc/self/mountinfo";  // the mount table of who lives below the root
  std::uint32_t user = 0;  // of the process that it is opened for: who answers for a file system that hangs
};

struct ForeignFile {
  UniqueFd fd;
  std::uint64_t device = 0, inode = 0;
  // Who alone could write it; none: others could too, or the file system may lie.
  std::optional<std::uint32_t> owner{};
  std::uint32_t user = 0;              // as fstat() has it
  std::optional<MappedRegion> copy{};  // of a file that is served by another user
};

// Opens a regular file for reading. Nothing else is touched: a FIFO or a device would notice, and files of
// the kernel (/proc, /sys) mean what they do not say. Waits for as long as the file system does: see
// PatientOpener.
Result<ForeignFile> open_foreign_file(const FileRequest& request);

// Its content, mapped, or as it was copied.
Result<MappedRegion> map_foreign_file(ForeignFile& file);

}  // namespace ddprof
