#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mapped_region.hpp"
#include "base/patient_opener.hpp"
#include "base/result.hpp"
#include "process/jit_files.hpp"
#include "process/mapped_file.hpp"
#include "process/process_user.hpp"
#include "process/target_roots.hpp"

namespace ddprof {

// What was found: its content, and who is to be believed about it.
struct CodeImage {
  std::string path{};  // below its root
  MappedRegion region{};
  std::shared_ptr<const TargetRoot> root{};  // null: ours
  std::optional<std::uint32_t> owner{};      // its only writer; none: others could write it too
  std::optional<UserRights> rights{};        // with which the paths that it names are opened; none: ours
};

// Opens files as the target sees them. The only way by which the process module reaches the file system.
class FileProvider {
 public:
  virtual ~FileProvider() = default;
  virtual Result<CodeImage> open(const MappedFile& file) = 0;
  virtual Result<JitFile> open_jit_dump(const MappedFile& file) = 0;
};

// By its path below the root of the process, with the rights of its user; then through /proc/PID/map_files
// (deleted and replaced files, and those that the user may run but not read; needs CAP_CHECKPOINT_RESTORE);
// when the process is gone, by the path as we see it ourselves. What is found must be the file of the record:
// by device and inode, or by build id. A file system that hangs is waited for once, and not for long.
class ProcFileProvider final : public FileProvider {
 public:
  // What may be copied into memory of file systems that a user serves (FUSE).
  static constexpr std::size_t kMaxCopiedBytesOfUser = std::size_t{16} << 20U;
  static constexpr std::size_t kMaxCopiedBytes = std::size_t{64} << 20U;

  Result<CodeImage> open(const MappedFile& file) override;
  Result<JitFile> open_jit_dump(const MappedFile& file) override { return JitFile::open_dump(opener_, file); }

 private:
  Result<CodeImage> try_open(const FileRequest& request, const MappedFile& file);
  Result<CodeImage> open_of_process(const MappedFile& file, const UserRights& user,
                                    std::shared_ptr<const TargetRoot> root);
  // Of a process that is gone, or not ours to look into.
  Result<CodeImage> open_of_unknown(const MappedFile& file);
  [[nodiscard]] std::size_t copyable_bytes(std::uint32_t user) const;

  PatientOpener opener_;
  TargetRoots roots_;
  absl::flat_hash_map<std::uint32_t, std::size_t> copied_bytes_;  // by user
};

}  // namespace ddprof
