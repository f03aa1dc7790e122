#include "base/mapped_region.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace ddprof {

namespace {

std::uint64_t number_of(const struct stat& status) {
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15U;
  const auto changed = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000U +
                       static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  return ((status.st_dev * kSpread + status.st_ino) * kSpread + changed) | 1U;
}

}  // namespace

MappedRegion& MappedRegion::operator=(MappedRegion&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    is_copy_ = other.is_copy_;
    file_number_ = other.file_number_;
  }
  return *this;
}

Result<MappedRegion> MappedRegion::map_shared(int fd, std::size_t size, std::int64_t offset) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  if (memory == MAP_FAILED) return errno_error(errno, "mmap");
  return MappedRegion(static_cast<std::byte*>(memory), size);
}

Result<MappedRegion> MappedRegion::map_shared_for_reading(int fd, std::size_t offset, std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return errno_error(errno, "mmap");
  return MappedRegion(static_cast<std::byte*>(memory), size);
}

Result<MappedRegion> MappedRegion::map_anonymous_shared(std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno_error(errno, "mmap");
  return MappedRegion(static_cast<std::byte*>(memory), size);
}

Result<MappedRegion> MappedRegion::map_file(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_error(errno, "fstat");
  if (status.st_size == 0) return MappedRegion();
  auto size = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return errno_error(errno, "mmap");
  MappedRegion region(static_cast<std::byte*>(memory), size);
  region.file_number_ = number_of(status);
  return region;
}

Result<MappedRegion> MappedRegion::copy_file(int fd, std::size_t size) {
  if (size == 0) return MappedRegion();
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_error(errno, "fstat");
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno_error(errno, "mmap");
  MappedRegion region(static_cast<std::byte*>(memory), size);
  region.file_number_ = number_of(status);
  region.is_copy_ = true;
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::pread(fd, region.data_ + done, size - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(errno, "read");
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return region;
}

void MappedRegion::drop_pages() const {
  if (data_ != nullptr && !is_copy_) ::madvise(data_, size_, MADV_DONTNEED);
}

void MappedRegion::reset() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

namespace {

std::atomic<std::uint64_t> pages_missing{0};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // used in a signal handler

std::uintptr_t page_mask = 0;

void read_zeros(int signal, siginfo_t* info, void*) {
  const int saved_errno = errno;
  // Of our mappings only those of files can have no page behind an address, and those are never written to.
  const auto page = reinterpret_cast<std::uintptr_t>(info->si_addr) & page_mask;
  const bool is_missing = info->si_code == BUS_ADRERR && page != 0;
  const auto size = static_cast<std::size_t>(~page_mask + 1);
  if (is_missing && ::mmap(reinterpret_cast<void*>(page), size, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
    pages_missing.fetch_add(1, std::memory_order_relaxed);
  } else {
    std::signal(signal, SIG_DFL);  // it comes again, and ends us
  }
  errno = saved_errno;
}

}  // namespace

void survive_truncated_files() {
  page_mask = ~(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)) - 1);
  struct sigaction action {};
  action.sa_sigaction = read_zeros;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

std::uint64_t missing_file_pages() { return pages_missing.load(std::memory_order_relaxed); }

}  // namespace ddprof
