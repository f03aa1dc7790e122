#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// Opens regular files for reading, as whoever lives below `root` sees them ("/proc/123/root"; empty: as we
// do): links that are absolute, or climb, stay below it (openat2, as of Linux 5.6). Reads the first byte too,
// for file systems that open what they cannot read.
Result<UniqueFd> open_regular_file(const std::string& root, const std::string& path);

// Opens files on file systems that may hang: a dead NFS server, a stopped FUSE daemon. Waits for each at most
// its patience; the mount that made it wait is left alone from then on. For one thread.
class PatientOpener {
 public:
  using Open = std::function<Result<UniqueFd>(const std::string& root, const std::string& path)>;
  static constexpr std::chrono::milliseconds kPatience{1000};
  // Each hung call costs a thread. After this many nothing more is opened.
  static constexpr std::size_t kMaxHungCalls = 16;

  explicit PatientOpener(std::chrono::milliseconds patience = kPatience, Open open = open_regular_file)
      : patience_(patience), open_(std::move(open)) {}

  // `exhausted` when the file system hangs, or did before.
  Result<UniqueFd> open(const std::string& root, const std::string& path);

  // The places that are left alone, as paths that we could open.
  [[nodiscard]] const std::vector<std::string>& hung_places() const { return hung_places_; }

 private:
  [[nodiscard]] bool is_left_alone(std::string_view path) const;

  std::chrono::milliseconds patience_;
  Open open_;
  std::vector<std::string> hung_places_;
};

// Where the file system begins that `path` below `root` is on, by the mount table of who lives there: its
// mount point below `root`. The folder of `path` when that is the root of all, or unknown: links may lead
// elsewhere, and one that hangs shall not take everything with it.
[[nodiscard]] std::string mount_of(const std::string& root, const std::string& path,
                                   std::string_view mountinfo);

}  // namespace ddprof
