#include "session/disk_scratch.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace ddprof {

namespace {

Result<void> check_room(int fd, std::uint64_t bytes) {
  constexpr std::uint64_t kShare = 4;
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return errno_error(errno, "unpack onto the disk");
  const auto type = static_cast<std::uint64_t>(system.f_type);
  if (type == TMPFS_MAGIC || type == RAMFS_MAGIC)
    return make_error(ErrorCode::exhausted, "unpack {} bytes: the cache folder is in memory", bytes);
  const std::uint64_t room = system.f_bavail * static_cast<std::uint64_t>(system.f_bsize) / kShare;
  if (bytes <= room) return {};
  return make_error(ErrorCode::exhausted, "unpack {} bytes: the cache folder's disk has {} for that", bytes,
                    room);
}

// What has been written is not left in the page cache, where it would take the place of what the target uses.
class UncachedWriter {
 public:
  explicit UncachedWriter(int fd) : fd_(fd) {}

  Result<void> append(std::span<const std::byte> piece) {
    for (std::size_t done = 0; done < piece.size();) {
      const ssize_t count = ::write(fd_, piece.data() + done, piece.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return errno_error(errno, "unpack onto the disk");
      done += static_cast<std::size_t>(count);
    }
    cached_bytes_ += piece.size();
    return cached_bytes_ < kMaxCachedBytes ? Result<void>() : drop();
  }

  Result<void> drop() {
    cached_bytes_ = 0;
    if (::fdatasync(fd_) != 0) return errno_error(errno, "unpack onto the disk");
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
    return {};
  }

 private:
  static constexpr std::size_t kMaxCachedBytes = std::size_t{32} << 20U;

  int fd_;
  std::size_t cached_bytes_ = 0;
};

}  // namespace

Result<MappedRegion> DiskScratch::fill(std::uint64_t bytes, const Produce& produce) {
  const UniqueFd file = TRY(folder_.unnamed_file());
  TRY(check_room(file.get(), bytes));
  UncachedWriter writer(file.get());
  TRY(produce([&](std::span<const std::byte> piece) { return writer.append(piece); }));
  TRY(writer.drop());
  return MappedRegion::map_file(file.get());
}

}  // namespace ddprof
