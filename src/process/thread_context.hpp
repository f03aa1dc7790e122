#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ddprof {

// What a thread publishes about what it is doing: OpenTelemetry's thread context (OTEP 4947). Texts point
// into the bytes that were parsed.
struct ThreadContext {
  struct Attribute {
    std::uint8_t key = 0;  // index into what the process publishes as threadlocal.attribute_key_map
    std::string_view text;
  };

  std::array<std::uint8_t, 16> trace_id{};  // in the order of W3C
  std::uint64_t span_id = 0;
  std::vector<Attribute> attributes;  // of each key the last
};

// None: it is not valid, or too short. Attributes end where the bytes do.
std::optional<ThreadContext> parse_thread_context(std::span<const std::byte> record);

}  // namespace ddprof
