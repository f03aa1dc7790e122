#include "process/thread_context.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>

namespace ddprof {

namespace {

constexpr std::size_t kSpanIdAt = 16, kValidAt = 24, kAttributesSizeAt = 26, kAttributesAt = 28;

std::uint64_t big_endian(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  for (std::byte byte : bytes) number = number << 8U | std::to_integer<std::uint64_t>(byte);
  return number;
}

std::span<const std::byte> attribute_bytes(std::span<const std::byte> record) {
  std::uint16_t size = 0;
  std::memcpy(&size, record.data() + kAttributesSizeAt, sizeof size);
  const auto rest = record.subspan(kAttributesAt);
  return rest.first(std::min<std::size_t>(size, rest.size()));
}

std::vector<ThreadContext::Attribute> read_attributes(std::span<const std::byte> bytes) {
  std::vector<ThreadContext::Attribute> attributes;
  while (bytes.size() >= 2) {
    const auto key = std::to_integer<std::uint8_t>(bytes[0]);
    const auto length = std::to_integer<std::size_t>(bytes[1]);
    bytes = bytes.subspan(2);
    if (length > bytes.size()) break;
    attributes.push_back({key, {reinterpret_cast<const char*>(bytes.data()), length}});
    bytes = bytes.subspan(length);
  }
  return attributes;
}

void keep_last_of_each_key(std::vector<ThreadContext::Attribute>& attributes) {
  std::bitset<256> seen;
  std::reverse(attributes.begin(), attributes.end());
  std::erase_if(attributes, [&](const ThreadContext::Attribute& attribute) {
    const bool is_known = seen[attribute.key];
    seen[attribute.key] = true;
    return is_known;
  });
  std::reverse(attributes.begin(), attributes.end());
}

}  // namespace

std::optional<ThreadContext> parse_thread_context(std::span<const std::byte> record) {
  if (record.size() < kAttributesAt || record[kValidAt] != std::byte{1}) return std::nullopt;
  ThreadContext context;
  std::memcpy(context.trace_id.data(), record.data(), context.trace_id.size());
  context.span_id = big_endian(record.subspan(kSpanIdAt, 8));
  context.attributes = read_attributes(attribute_bytes(record));
  keep_last_of_each_key(context.attributes);
  return context;
}

namespace {

constexpr std::uint64_t kMostModules = 0xffff;

// Blocks at fixed distances lie below the thread pointer, and not far.
bool is_fixed_offset(std::uint64_t value) {
  constexpr std::int64_t kFarthest = std::int64_t{1} << 30U;
  const auto offset = static_cast<std::int64_t>(value);
  return offset < 0 && offset >= -kFarthest;
}

using Pair = std::array<std::uint64_t, 2>;

std::optional<Pair> read_pair(const ReadTarget& read, Address at) {
  Pair pair{};
  if (!read(at, std::as_writable_bytes(std::span(pair)))) return std::nullopt;
  return pair;
}

// A module and an offset in its block, as glibc writes them. That the offset is the one of the file shows
// that it is what we take it for.
std::optional<ThreadVariable> from_index(const Pair& index, const ThreadSymbol& symbol) {
  if (index[0] == 0 || index[0] > kMostModules || index[1] != symbol.offset) return std::nullopt;
  return ThreadVariable{ThreadVariable::Kind::dynamic, static_cast<std::int64_t>(index[1]), index[0]};
}

std::optional<ThreadVariable> from_offset(std::uint64_t value) {
  if (!is_fixed_offset(value)) return std::nullopt;
  return ThreadVariable{ThreadVariable::Kind::fixed, static_cast<std::int64_t>(value), 0};
}

std::optional<ThreadVariable> from_slot(const ThreadSymbol::Slot& slot, const ThreadSymbol& symbol,
                                        std::uint64_t bias, const ReadTarget& read) {
  const Address at{slot.vaddr + bias};
  if (slot.kind == ThreadSymbol::Slot::Kind::offset) {
    std::uint64_t value = 0;
    if (!read(at, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return from_offset(value);
  }
  const auto pair = read_pair(read, at);
  if (!pair) return std::nullopt;
  if (slot.kind == ThreadSymbol::Slot::Kind::index) return from_index(*pair, symbol);
  if (auto fixed = from_offset((*pair)[1])) return fixed;
  const auto index = read_pair(read, Address{(*pair)[1]});
  return index ? from_index(*index, symbol) : std::nullopt;
}

}  // namespace

ThreadVariable locate_in_executable(const ThreadSymbol& symbol) {
  return {ThreadVariable::Kind::fixed, symbol.executable_offset, 0};
}

std::optional<ThreadVariable> locate_in_library(const ThreadSymbol& symbol, std::uint64_t bias,
                                                const ReadTarget& read) {
  for (const ThreadSymbol::Slot& slot : symbol.slots) {
    if (auto found = from_slot(slot, symbol, bias, read)) return found;
  }
  return std::nullopt;
}

}  // namespace ddprof
