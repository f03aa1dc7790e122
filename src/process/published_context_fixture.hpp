#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "proto/otlp_fields.hpp"

namespace ddprof {

// A context that says what the keys of its threads mean, the first one of key 0.
inline std::string context_with_thread_keys(const std::vector<std::string>& keys) {
  std::string array, value, pair, payload;
  for (const std::string& key : keys) {
    std::string text;
    protozero::pbf_writer(text).add_string(otlp_field::kText, key);
    protozero::pbf_writer(array).add_message(otlp_field::kArrayValues, text);
  }
  protozero::pbf_writer(value).add_message(otlp_field::kArray, array);
  protozero::pbf_writer(pair).add_string(otlp_field::kKey, "threadlocal.attribute_key_map");
  protozero::pbf_writer(pair).add_message(otlp_field::kValue, value);
  protozero::pbf_writer(payload).add_message(2, pair);
  return payload;
}

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
