#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace ddprof {

// The GNU build id of an ELF file: up to 20 bytes (SHA-1 today; shorter ones exist). Empty when the file has
// none.
class BuildId {
 public:
  static constexpr std::size_t kMaxBytes = 20;

  BuildId() = default;
  explicit BuildId(std::span<const std::byte> bytes)
      : size_(static_cast<std::uint8_t>(std::min(bytes.size(), kMaxBytes))) {
    if (size_ != 0) std::memcpy(bytes_.data(), bytes.data(), size_);
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }
  [[nodiscard]] std::string hex() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(size_ * 2U);
    for (std::byte byte : bytes()) {
      text += digits[std::to_integer<unsigned>(byte >> 4)];
      text += digits[std::to_integer<unsigned>(byte & std::byte{15})];
    }
    return text;
  }

  friend auto operator<=>(const BuildId&, const BuildId&) = default;

  template <typename H>
  friend H AbslHashValue(H hash, const BuildId& id) {
    return H::combine(std::move(hash), id.bytes_, id.size_);
  }

 private:
  std::array<std::byte, kMaxBytes> bytes_{};
  std::uint8_t size_ = 0;
};

}  // namespace ddprof
