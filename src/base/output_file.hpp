#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// How files are written: profiles, logs, caches, spooled requests.
//
// Root may be asked to write where other users can write too: into /tmp, into a folder of theirs, below a
// HOME that is not its own. What they have put there must neither lead it elsewhere nor make it wait,
// whatever fs.protected_symlinks and its like are set to:
//  - A path is followed folder by folder. A link on the way counts only if root or this user made it.
//  - A file is written under a new name and renamed. What had its name is replaced, never written through.
//  - A special file that the user named, such as a FIFO or /dev/null, is written to without waiting for a
//    reader longer than kReaderPatience. One of another user in a folder that everybody may write to is
//    nothing that the user named: it is replaced. A block device is never written to.
inline constexpr std::chrono::milliseconds kReaderPatience{5000};

enum class MissingFolders : std::uint8_t {
  fail,
  make,          // for this user alone
  make_if_safe,  // the same, but none in a folder of another user, who could replace it
};

enum class Durability : std::uint8_t { none, disk };

// Whether what this user made, such as a link, may be relied on.
[[nodiscard]] bool is_trusted_owner(uid_t owner);

// "DIR" and "NAME" of a path to a file.
[[nodiscard]] std::pair<std::string, std::string> split_path(const std::string& path);

class OutputFolder {
 public:
  static Result<OutputFolder> open(const std::string& path, MissingFolders missing = MissingFolders::fail);

  // The whole file appears at once, for this user alone. What has its name is replaced, a link too.
  Result<void> replace(const std::string& name, std::string_view content,
                       Durability durability = Durability::none) const;
  // The same for a name that is not taken yet. False: it is, and what has it stays as it is.
  Result<bool> create(const std::string& name, std::string_view content) const;
  // A file that no folder holds: it is gone when it is closed.
  [[nodiscard]] Result<UniqueFd> unnamed_file() const;
  // A regular file of this user, for reading. `not_found`: there is none of that name.
  [[nodiscard]] Result<UniqueFd> open_own(const std::string& name) const;
  [[nodiscard]] Result<std::string> read_own(const std::string& name, std::uint64_t max_bytes) const;
  // What is in the folder under this name, no link followed.
  [[nodiscard]] bool has(const std::string& name, struct stat& status) const;
  [[nodiscard]] bool remove(const std::string& name) const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }

 private:
  OutputFolder(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<std::string> write_temporary(const std::string& name, std::string_view content,
                                      Durability durability) const;

  UniqueFd fd_;
  std::string path_;
};

// "write X: the file system does not answer"
[[nodiscard]] Error does_not_answer(const std::string& operation);

// Writes what the user has named: a file, which is replaced as a whole, or a special file.
Result<void> write_output(const std::string& path, std::string_view content,
                          std::chrono::milliseconds patience = kReaderPatience);
// Whether that could be done when the time comes: the user should not learn it after an hour. A file system
// that hangs is an error, after a second.
Result<void> check_writable(const std::string& path);

// Adds a line to a log, which is made if need be. Never waits.
Result<void> append_line(const std::string& path, std::string_view line);
// The same without a line.
Result<void> check_log(const std::string& path);

}  // namespace ddprof
