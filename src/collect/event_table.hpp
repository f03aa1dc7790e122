#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collect/event_spec.hpp"

namespace ddprof {

// An event that has a name of its own; everything else is a tracepoint.
struct KnownEvent {
  std::string_view name;   // the original's spelling
  std::string_view alias;  // perf's spelling; empty: none
  EventSpec::Kind kind;
  std::uint64_t config;    // PERF_COUNT_SW_*, PERF_COUNT_HW_*
  std::string_view label;  // column in the profile
  std::string_view unit;
  std::uint64_t frequency;  // default rate: exactly one of the two is not 0
  std::uint64_t period;
  std::string_view meaning;
};

[[nodiscard]] std::span<const KnownEvent> known_events();
[[nodiscard]] const KnownEvent* find_known_event(std::string_view name);

}  // namespace ddprof
