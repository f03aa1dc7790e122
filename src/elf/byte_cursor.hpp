#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace ddprof {

// The part of `bytes` at [offset, offset + size); empty when it is not all there.
inline std::span<const std::byte> slice_of(std::span<const std::byte> bytes, std::uint64_t offset,
                                           std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.subspan(offset, size);
}

// A value of the machine's byte order (little-endian, as the files that we accept) at any alignment.
template <typename T>
std::optional<T> load(std::span<const std::byte> bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto part = slice_of(bytes, offset, sizeof(T));
  if (part.empty()) return std::nullopt;
  T value;
  std::memcpy(&value, part.data(), sizeof value);
  return value;
}

// The zero-terminated string at `offset` of a string table; empty when it starts outside or never ends. Where
// the file chooses how often this is asked, load_bounded_string() keeps it from having one long text searched
// each time.
inline std::string_view load_string(std::span<const std::byte> table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto rest = table.subspan(offset);
  const void* end = std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) return {};
  const auto* first = reinterpret_cast<const char*>(rest.data());
  return {first, static_cast<std::size_t>(static_cast<const char*>(end) - first)};
}

// As load_string(), but what does not end within `max_bytes` is cut there.
inline std::string_view load_bounded_string(std::span<const std::byte> table, std::uint64_t offset,
                                            std::size_t max_bytes) {
  if (offset >= table.size()) return {};
  const auto* first = reinterpret_cast<const char*>(table.data()) + offset;
  const std::size_t most = std::min<std::size_t>(table.size() - offset, max_bytes);
  const std::size_t size = ::strnlen(first, most);
  // The table ends in the middle of a text: no text of it.
  if (size == most && most < max_bytes) return {};
  return {first, size};
}

// Reads little-endian values off a section: numbers of DWARF and of CFI. A read past the end yields zero and
// marks the cursor as failed for good, so that a parser may read several fields and ask once.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes, std::uint64_t offset = 0)
      : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()) {
    seek(offset);
  }

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] std::uint64_t left() const { return static_cast<std::uint64_t>(end_ - at_); }
  // From the start of the bytes that it was made with.
  [[nodiscard]] std::uint64_t offset() const { return static_cast<std::uint64_t>(at_ - begin_); }
  [[nodiscard]] const std::byte* position() const { return at_; }
  [[nodiscard]] std::span<const std::byte> rest() const { return {at_, static_cast<std::size_t>(left())}; }
  void fail() {
    failed_ = true;
    at_ = end_;
  }
  void seek(std::uint64_t offset) {
    if (offset > static_cast<std::uint64_t>(end_ - begin_)) return fail();
    at_ = begin_ + offset;
  }
  void skip(std::uint64_t size) {
    if (size > left()) return fail();
    at_ += size;
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
  std::uint16_t u16() { return read<std::uint16_t>(); }
  std::uint32_t u32() { return read<std::uint32_t>(); }
  std::uint64_t u64() { return read<std::uint64_t>(); }
  std::uint32_t u24() {
    const std::uint32_t low = u16();
    return low | std::uint32_t{u8()} << 16U;
  }
  // An address or an offset of the size that a unit chose: 4 bytes or 8.
  std::uint64_t word(std::uint8_t size) { return size == 8 ? u64() : u32(); }

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
  void skip_leb() {
    while (at_ != end_ && (*at_ & std::byte{0x80}) != std::byte{0}) ++at_;
    skip(1);
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
    const void* zero = at_ != end_ ? std::memchr(at_, 0, left()) : nullptr;
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
  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  bool failed_ = false;
};

}  // namespace ddprof
