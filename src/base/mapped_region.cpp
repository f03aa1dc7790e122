#include "base/mapped_region.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace ddprof {

MappedRegion& MappedRegion::operator=(MappedRegion&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Result<MappedRegion> MappedRegion::map_shared(int fd, std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
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
  return MappedRegion(static_cast<std::byte*>(memory), size);
}

void MappedRegion::drop_pages() const {
  if (data_ != nullptr) ::madvise(data_, size_, MADV_DONTNEED);
}

void MappedRegion::reset() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace ddprof
