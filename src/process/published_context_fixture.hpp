#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace ddprof {

// Publishes as the OTEP says, in this process.
class PublishedHere {
 public:
  explicit PublishedHere(const std::string& payload) : payload_(payload) {
    const int fd = ::memfd_create("OTEL_CTX", MFD_CLOEXEC);
    EXPECT_EQ(::ftruncate(fd, kBytes), 0);
    head_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    ::close(fd);
    write(8, std::uint32_t{2});
    write(12, static_cast<std::uint32_t>(payload_.size()));
    write(24, reinterpret_cast<std::uint64_t>(payload_.data()));
    std::memcpy(head_, "OTEL_CTX", 8);
    write(16, std::uint64_t{1});
  }
  ~PublishedHere() { ::munmap(head_, kBytes); }
  PublishedHere(const PublishedHere&) = delete;
  PublishedHere& operator=(const PublishedHere&) = delete;

  template <typename Number>
  void write(std::size_t offset, Number value) {
    std::memcpy(static_cast<char*>(head_) + offset, &value, sizeof value);
  }

 private:
  static constexpr std::size_t kBytes = 4096;
  std::string payload_;
  void* head_ = nullptr;
};

}  // namespace ddprof
