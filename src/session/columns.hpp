#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collect/event_spec.hpp"
#include "profile/aggregator.hpp"

namespace ddprof {

// Which column of the profile each event adds to. The first event also counts samples; clocks have a hidden
// column, behind all visible ones, for estimates that are folded into the visible one when the period closes.
struct ColumnLayout {
  struct EventColumns {
    std::optional<std::uint32_t> samples;
    std::uint32_t value = 0;
    std::optional<std::uint32_t> estimate;
  };

  explicit ColumnLayout(std::span<const EventSpec> specs);

  std::vector<Column> columns;
  std::uint32_t visible = 0;
  std::vector<EventColumns> events;
};

}  // namespace ddprof
