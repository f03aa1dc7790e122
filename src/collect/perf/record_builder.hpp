#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace ddprof {

// Writes perf records byte by byte, as the kernel does. For tests.
class RecordBuilder {
 public:
  explicit RecordBuilder(std::uint32_t type, std::uint16_t misc = 0) {
    put(perf_event_header{.type = type, .misc = misc, .size = 0});
  }

  template <typename T>
  RecordBuilder& put(const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  RecordBuilder& u32(std::uint32_t value) { return put(value); }
  RecordBuilder& u64(std::uint64_t value) { return put(value); }
  RecordBuilder& fill(std::size_t count, std::byte value = {}) {
    bytes_.insert(bytes_.end(), count, value);
    return *this;
  }
  // With its end of string, padded to a multiple of 8.
  RecordBuilder& text(std::string_view text) {
    for (char character : text) put(character);
    put('\0');
    return fill((8 - bytes_.size() % 8) % 8);
  }
  // The fields TID, TIME, CPU and IDENTIFIER.
  RecordBuilder& trailer(std::uint32_t pid, std::uint32_t tid, std::uint64_t time, std::uint32_t cpu,
                         std::uint64_t identifier) {
    return u32(pid).u32(tid).u64(time).u32(cpu).u32(0).u64(identifier);
  }
  // In words, so that it is aligned like a ring.
  [[nodiscard]] std::vector<std::uint64_t> build() const {
    std::vector<std::byte> padded = bytes_;
    padded.resize((bytes_.size() / 8 + (bytes_.size() % 8 == 0 ? 0 : 1)) * 8);
    auto size = static_cast<std::uint16_t>(bytes_.size());
    std::memcpy(padded.data() + offsetof(perf_event_header, size), &size, sizeof size);
    std::vector<std::uint64_t> words(padded.size() / 8);
    std::memcpy(words.data(), padded.data(), words.size() * 8);
    return words;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace ddprof
