#pragma once

#include <cstdint>
#include <string>

#include "base/build_id.hpp"
#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/patient_opener.hpp"
#include "base/result.hpp"

namespace ddprof {

// What is known of a mapped file from a perf record or /proc/PID/maps: enough to open it and to tell whether
// what was opened is the same file.
struct FileIdentity {
  std::string path;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;  // 0: unknown (the record carried a build id instead)
  BuildId build_id{};       // empty: unknown
};

// Opens files as the target sees them. The only way by which the process module reaches the file system.
class FileProvider {
 public:
  virtual ~FileProvider() = default;
  // `pid` names the mount namespace, `mapping_start`/`mapping_end` the mapping (for deleted files).
  virtual Result<MappedRegion> open(Pid pid, Address mapping_start, Address mapping_end,
                                    const FileIdentity& identity) = 0;
};

// Through /proc/PID/root, then /proc/PID/map_files (deleted and replaced files; needs
// CAP_CHECKPOINT_RESTORE), then, when the process is gone, the path as we see it ourselves. Each candidate
// must have the recorded inode. A file system that hangs is waited for once, and not for long.
class ProcFileProvider final : public FileProvider {
 public:
  Result<MappedRegion> open(Pid pid, Address mapping_start, Address mapping_end,
                            const FileIdentity& identity) override;

 private:
  PatientOpener opener_;
};

}  // namespace ddprof
