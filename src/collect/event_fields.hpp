#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace ddprof {

// The grammar of `-e`, which scripts of the original ddprof already use:
//   events := event (';' event)*      event := (NAME | key '=' value) separated by spaces or commas
// Every key has aliases; a NAME without '=' is short for event=NAME. What the values mean is event_spec.cpp's
// part.

enum class EventKey : std::uint8_t {
  frequency,
  period,
  mode,
  scale,
  label,
  event,
  group,
  id,
  argument,
  raw_offset,
  raw_size,
  register_number,
  stack_size,
};
inline constexpr std::size_t kEventKeyCount = 13;

// One event as written: the values by key.
struct EventFields {
  std::array<std::optional<std::string_view>, kEventKeyCount> values;

  std::optional<std::string_view>& operator[](EventKey key) { return values[static_cast<std::size_t>(key)]; }
  const std::optional<std::string_view>& operator[](EventKey key) const {
    return values[static_cast<std::size_t>(key)];
  }
};

// Cuts one event into its fields; fails on unknown and repeated keys.
Result<EventFields> split_event(std::string_view text);

// The text without spaces and commas at both ends.
std::string_view trim_event(std::string_view text);

template <typename... Args>
[[nodiscard]] Error event_error(std::string_view event, fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::invalid_argument, "event {}: {}", event,
                    fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ddprof
