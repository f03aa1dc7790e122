#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_region.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"

namespace ddprof {

// What the kernel asks of a thread that opens a file: who it is.
struct UserRights {
  std::uint32_t user = 0;
  std::uint32_t group = 0;
  std::vector<std::uint32_t> groups{};

  friend bool operator==(const UserRights&, const UserRights&) = default;
};

// The rights of a user without any group that others share.
constexpr std::uint32_t kNoGroup = 65534;
[[nodiscard]] inline UserRights rights_of_user(std::uint32_t user) { return {user, kNoGroup, {}}; }

// From now on the calling thread, and no other, opens files as this user and without capabilities. A profiler
// that may not become another user (no CAP_SETUID) stays its own user, without capabilities. False: neither
// can be had, and the thread may still open what this user may not.
[[nodiscard]] bool take_on(const UserRights& rights);

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

// Opens files on file systems that may hang: a dead NFS server, a stopped FUSE daemon. Waits for each at most
// its patience; the mount that made it wait is left alone from then on. Others go on, and so do other users:
// each call that hangs costs time and a thread, so a user has few of them, and each waits half as long as the
// one before. For any thread.
class PatientOpener {
 public:
  using Open = std::function<Result<ForeignFile>(const FileRequest&)>;
  static constexpr std::chrono::milliseconds kPatience{1000};
  // After this many nothing more is opened for that user; root's file systems are the administrator's.
  static constexpr std::size_t kMaxHungCallsOfUser = 4;
  // After this many nothing more is opened.
  static constexpr std::size_t kMaxHungCalls = 64;

  explicit PatientOpener(std::chrono::milliseconds patience = kPatience, Open open = open_foreign_file)
      : patience_(patience), open_(std::move(open)) {}

  // `exhausted` when the file system hangs, or did before.
  Result<ForeignFile> open(const FileRequest& request);

  // What is left alone, and for whom.
  struct HungPlace {
    std::string path;
    std::uint32_t user = 0;

    friend bool operator==(const HungPlace&, const HungPlace&) = default;
  };
  [[nodiscard]] std::vector<HungPlace> hung_places() const;

 private:
  [[nodiscard]] std::size_t hung_calls_of(std::uint32_t user) const;
  [[nodiscard]] bool is_left_alone(const HungPlace& place, std::string_view path) const;
  // Nothing: it is left alone.
  [[nodiscard]] std::optional<std::chrono::milliseconds> patience_for(const HungPlace& place,
                                                                      std::string_view path) const;

  std::chrono::milliseconds patience_;
  Open open_;
  mutable std::mutex mutex_;  // guards what follows, and is not held while a file is opened
  std::vector<HungPlace> hung_places_;
};

// Where the file system begins that the file is on, by the mount table of who lives there; the folder of the
// file when that is the root of all, or unknown: links may lead elsewhere, and one that hangs shall not take
// everything with it. And who answers for it: the user who serves it, else the one whose process it is.
[[nodiscard]] PatientOpener::HungPlace place_of(const FileRequest& request, std::string_view mountinfo);

}  // namespace ddprof
