#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/call_within.hpp"
#include "base/ids.hpp"
#include "base/mapped_region.hpp"
#include "base/output_file.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

struct PrivateFile {
  std::string name;
  std::uint64_t bytes = 0;
  Nanoseconds written{};  // Unix time
};

// A folder of files that only this user may read and write: caches, a spool. Another user's folder, or
// another user's file in it, is not used. Several processes may use one at the same time: a reader finds the
// old file or the new one, and who has the old one mapped keeps it. A file system that hangs makes calls
// fail, after some seconds the first time, then at once until it is back.
class PrivateFolder {
 public:
  static constexpr std::chrono::milliseconds kOpenPatience{1000};
  static constexpr std::chrono::milliseconds kPatience{10'000};  // a slow disk may take seconds to write

  PrivateFolder() = default;

  // Makes the folder, and those that it is in, but puts nothing into a folder of another user: under sudo the
  // home directory may be theirs. Takes rights from others that they have on the folder itself: who can open
  // it could lock it.
  static Result<PrivateFolder> open(const std::string& path);

  // One inside of this one, made if need be.
  [[nodiscard]] Result<PrivateFolder> folder(const std::string& name) const;

  [[nodiscard]] bool is_open() const { return folder_ != nullptr; }
  [[nodiscard]] Result<MappedRegion> read(const std::string& name) const;
  // A copy, which cannot fail later as a mapping can: of a file that is cut, or on a disk that is broken.
  // `not_found`: it has been removed. `corrupt`: it is larger than it may be.
  [[nodiscard]] Result<std::string> read_copy(const std::string& name, std::uint64_t max_bytes) const;
  Result<void> write(const std::string& name, std::span<const std::byte> content) const;
  // As write(), and what was written survives a crash of the machine.
  Result<void> write_durably(const std::string& name, std::span<const std::byte> content) const;
  // A file without a name, which is gone when it is closed. Writing to it waits as long as the disk does.
  [[nodiscard]] Result<UniqueFd> unnamed_file() const;
  // False when another process has removed it.
  [[nodiscard]] bool remove(const std::string& name) const;
  // Whether files can be removed: not from a file system that is mounted for reading.
  [[nodiscard]] bool is_writable() const;
  // Not once the folder has been removed: nothing can be put into it any more.
  [[nodiscard]] bool is_linked() const;
  // Those of this user, in no order. Those whose names begin with a dot are being written, or were when
  // a process crashed.
  [[nodiscard]] std::vector<PrivateFile> files() const;
  // Whether there is one whose name ends like this; cheaper than looking at each.
  [[nodiscard]] bool has_file(std::string_view suffix) const;
  // Held until it is closed; not open if another process has held it all that time, or if it cannot be made.
  // Without a name the folder itself is the lock, which needs no room on the disk.
  [[nodiscard]] UniqueFd lock(const std::string& name, std::chrono::milliseconds patience) const;
  [[nodiscard]] UniqueFd try_lock() const { return lock(".", std::chrono::milliseconds(0)); }
  // Removes the files that were written longest ago until those left have at most this many bytes.
  void trim(std::uint64_t max_bytes) const;

 private:
  using Shared = std::shared_ptr<const OutputFolder>;  // with calls that hang

  explicit PrivateFolder(OutputFolder folder) : folder_(std::make_shared<OutputFolder>(std::move(folder))) {}

  static Result<PrivateFolder> open_own(Result<OutputFolder> folder, const std::string& path);
  Result<void> write(const std::string& name, std::span<const std::byte> content,
                     Durability durability) const;
  // The answer, or `otherwise` when there is none in time.
  template <typename Work, typename Answer = std::invoke_result_t<Work, const OutputFolder&>>
  Answer ask(Work work, Answer otherwise) const;

  Shared folder_;
  PatientCalls calls_{kPatience};
};

}  // namespace ddprof
