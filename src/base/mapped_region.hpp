#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.hpp"

namespace ddprof {

// Owns one mmap. Move-only, empty by default.
class MappedRegion {
 public:
  MappedRegion() = default;
  MappedRegion(MappedRegion&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        file_number_(other.file_number_),
        is_copy_(other.is_copy_) {}
  MappedRegion& operator=(MappedRegion&& other) noexcept;
  ~MappedRegion() { reset(); }

  // Maps `size` bytes of fd from `offset` on, shared and writable (a perf ring).
  static Result<MappedRegion> map_shared(int fd, std::size_t size, std::int64_t offset = 0);
  // Maps `size` bytes of fd from `offset` on, shared and read-only.
  static Result<MappedRegion> map_shared_for_reading(int fd, std::size_t offset, std::size_t size);
  // Zeroes that this process shares with those that it forks.
  static Result<MappedRegion> map_anonymous_shared(std::size_t size);
  // Maps the whole file behind fd read-only; an empty file gives an empty region.
  static Result<MappedRegion> map_file(int fd);
  // Its first `size` bytes as they are now, in memory: for a file that could stop to answer. What is missing
  // of them is zero.
  static Result<MappedRegion> copy_file(int fd, std::size_t size);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Tells files apart, and what one holds from what it held before it was changed: device, inode and time of
  // change as one number. 0: no file.
  [[nodiscard]] std::uint64_t file_number() const { return file_number_; }
  // Gives the pages back to the page cache; reading them again is slow but right.
  void drop_pages() const;
  void reset();
  // Forgets a mapping that fork() did not bring into this process.
  void abandon() { data_ = nullptr, size_ = 0; }

 private:
  MappedRegion(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t file_number_ = 0;
  bool is_copy_ = false;  // its pages are nowhere else
};

// Files that are mapped can be cut short by others at any moment, for example when a library is written over
// in place, and reading what is gone is a SIGBUS. From this call on it reads as zeros in this process, which
// readers of foreign bytes have to bear anyway.
void survive_truncated_files();

// Pages that were missing so far.
std::uint64_t missing_file_pages();

}  // namespace ddprof
