#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/patient_opener.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "process/mapped_file.hpp"

namespace ddprof {

// A file by which a JIT compiler tells of its code. Anybody can leave a file of that name in /tmp, and could
// name anything in it: it must belong to the user of the process, be a regular file, and be on no file system
// that the user serves, for it is read on threads that must not hang. The reason of a refusal is to be told;
// not_found is the usual case.
class JitFile {
 public:
  // /tmp/perf-PID.map, with the number that the process has in its own namespace, as the process sees it;
  // then as we see it. A process that has ended must have been ours.
  static Result<JitFile> open_perf_map(PatientOpener& opener, Pid pid);
  // The jitdump that a process has mapped, as it sees it. To be opened when the mapping is seen: it stays
  // readable when the process ends.
  static Result<JitFile> open_dump(PatientOpener& opener, const MappedFile& file);

  [[nodiscard]] const std::string& path() const { return path_; }
  // As it is now: these files grow.
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

}  // namespace ddprof
