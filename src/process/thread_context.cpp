#include "process/thread_context.hpp"

#include <algorithm>
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

}  // namespace ddprof
