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

}  // namespace ddprof
