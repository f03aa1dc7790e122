#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "base/build_id.hpp"
#include "base/foreign_file.hpp"
#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

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

// A file as one process has mapped it: `pid` names the mount namespace, the range the mapping (for deleted
// files).
struct MappedFile {
  Pid pid{};
  Address start{}, end{};
  FileIdentity identity{};
};

// With whose rights a process opens files, and what it calls itself.
struct ProcessUser {
  UserRights rights;
  std::int32_t inner_pid = 0;  // in its own PID namespace
};

// From the bytes of /proc/PID/status.
[[nodiscard]] std::optional<ProcessUser> parse_process_user(std::string_view status);
// None: the process is gone.
[[nodiscard]] std::optional<ProcessUser> read_process_user(Pid pid);

// Its user alone, at a tenth of the cost: by the owner of /proc/PID. A process that may not be dumped shows
// root there, so that answer is not believed.
[[nodiscard]] std::optional<std::uint32_t> find_user_of(Pid pid);

// The rights with which to open a path that a file names: as the one who wrote the file. None: ours.
// `owner` is the file's only writer; none: others could write it too. `process` is who uses it; none: gone.
[[nodiscard]] std::optional<UserRights> rights_of_writer(std::optional<std::uint32_t> owner,
                                                         const std::optional<UserRights>& process);

// The root directory that a process sees when it is not ours: in a container, a chroot. Held open, so that
// files can be found below it when the process has ended.
class TargetRoot {
 public:
  explicit TargetRoot(UniqueFd fd) : fd_(std::move(fd)) {}

  // A path that leads there, in this process; nowhere if it is not open.
  [[nodiscard]] std::string path() const;

 private:
  UniqueFd fd_;
};

// Every distinct root once, as long as it is used: containers come and go.
class TargetRoots {
 public:
  // Beyond, files of further roots are found by what their processes have mapped, and nothing beside them.
  static constexpr std::size_t kMaxRoots = 256;

  // Null when the process sees what we see. Fails when it is gone; when its root cannot be held it is one
  // that leads nowhere.
  Result<std::shared_ptr<const TargetRoot>> find_or_open(Pid pid);

 private:
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;  // mount namespace, device, inode

  friend bool sees_our_root(Pid pid);
  static Key key_of(Pid pid);

  std::map<Key, std::weak_ptr<const TargetRoot>> roots_;
};

// Whether paths mean the same to a process and to us. Not for one that is gone.
[[nodiscard]] bool sees_our_root(Pid pid);

// A file by which a JIT compiler tells of its code. Any user can leave a file of that name in /tmp, and could
// name anything in it: it must belong to the user of the process, be a regular file, and be on no file system
// that the user serves, for it is read while names are made. The reason of a refusal is to be told;
// not_found is the usual case.
class JitFile {
 public:
  // /tmp/perf-PID.map, with the number that the process has in its own namespace, as the process sees it;
  // then as we see it. A process that has ended must have been ours.
  static Result<JitFile> open_jit_names(PatientOpener& opener, Pid pid);
  // The jitdump that a process has mapped, as it sees it. To be opened when the mapping is seen: it stays
  // readable when the process ends.
  static Result<JitFile> open_dump(PatientOpener& opener, const MappedFile& file);

  [[nodiscard]] const std::string& path() const { return path_; }
  // As this kernel knows it now: these files grow. Waits for no file system.
  [[nodiscard]] Result<std::uint64_t> size() const;
  // Fills `into` from `offset` on; returns how much of it, less at the end of the file.
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) const;
  // Fails with `exhausted` when there is more.
  [[nodiscard]] Result<std::string> read_all(std::size_t max_bytes) const;

 private:
  JitFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  static Result<JitFile> open(PatientOpener& opener, const FileRequest& request);

  UniqueFd fd_;
  std::string path_;
};

// Whether a mapping of this path is how a JIT compiler points at its jitdump: ".../jit-<digits>.dump".
bool is_jit_dump_path(std::string_view path);

// What was found: its content, and who is to be believed about it.
struct CodeImage {
  std::string path{};  // below its root
  MappedRegion region{};
  std::shared_ptr<const TargetRoot> root{};  // null: ours
  std::optional<std::uint32_t> owner{};      // its only writer; none: others could write it too
  std::optional<UserRights> rights{};        // with which the paths that it names are opened; none: ours
  std::optional<JitFile> dump{};             // instead of all that, of a jitdump
};

// Opens files as the target sees them. The only way by which this module opens a file that a process maps or
// names; what /proc says of processes is read by proc_files.hpp, and what can hang there by ForeignMemory.
class FileProvider {
 public:
  // Opens the file, on any thread, and may outlive the provider.
  using Open = std::function<Result<CodeImage>()>;

  virtual ~FileProvider() = default;
  // Waits for no file system. What tells of the process is read now: it may be gone a moment later.
  virtual Open prepare(const MappedFile& file) = 0;
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

  ProcFileProvider();

  Open prepare(const MappedFile& file) override;

 private:
  class Files;

  std::shared_ptr<Files> files_;
  TargetRoots roots_;
};

}  // namespace ddprof
