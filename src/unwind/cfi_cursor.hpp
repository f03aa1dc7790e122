#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ddprof {

// Reads little-endian values off a span. A read past the end yields zero and marks the cursor as failed for
// good, so that a parser may read several fields and ask once.
class CfiCursor {
 public:
  explicit CfiCursor(std::span<const std::byte> bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] const std::byte* position() const { return at_; }
  [[nodiscard]] std::span<const std::byte> rest() const { return {at_, left()}; }
  void fail() {
    failed_ = true;
    at_ = end_;
  }

  template <typename T>
  T read() {
    T value{};
    if (left() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint8_t u8() { return read<std::uint8_t>(); }

  // LEB128; bits past the 64th are dropped.
  std::uint64_t uleb() {
    if (at_ != end_ && (*at_ & std::byte{0x80}) == std::byte{0})
      return std::to_integer<std::uint64_t>(*at_++);
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;  // also after a failure, which reads as 0
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t byte = u8();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) != 0) continue;
      if ((byte & 0x40U) != 0 && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
      return static_cast<std::int64_t>(value);
    }
  }

  std::span<const std::byte> take(std::uint64_t size) {
    if (size > left()) {
      fail();
      return {};
    }
    const std::span<const std::byte> part{at_, static_cast<std::size_t>(size)};
    at_ += size;
    return part;
  }

  std::string_view string() {
    const void* zero = left() != 0 ? std::memchr(at_, 0, left()) : nullptr;
    if (zero == nullptr) {
      fail();
      return {};
    }
    const auto* first = reinterpret_cast<const char*>(at_);
    const std::string_view text(first, static_cast<std::size_t>(static_cast<const char*>(zero) - first));
    at_ += text.size() + 1;
    return text;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
  bool failed_ = false;
};

}  // namespace ddprof
