#include "session/columns.hpp"

namespace ddprof {

ColumnLayout::ColumnLayout(std::span<const EventSpec> specs) {
  for (const EventSpec& spec : specs) {
    EventColumns event;
    if (events.empty()) {
      event.samples = static_cast<std::uint32_t>(columns.size());
      columns.push_back({"samples", "count"});
    }
    event.value = static_cast<std::uint32_t>(columns.size());
    columns.push_back({spec.label, spec.unit});
    events.push_back(event);
  }
  visible = static_cast<std::uint32_t>(columns.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].is_clock) continue;
    events[i].estimate = static_cast<std::uint32_t>(columns.size());
    columns.push_back({"estimate", specs[i].unit});
  }
}

}  // namespace ddprof
