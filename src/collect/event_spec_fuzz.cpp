#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "collect/event_spec.hpp"

// Whatever is written after -e: an error with a sentence, or events that an engine can open.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto events = ddprof::parse_events(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!events.ok()) {
    if (events.error().message.empty()) std::abort();
    return 0;
  }
  if (events->empty()) std::abort();
  for (const ddprof::EventSpec& event : *events) {
    if ((event.frequency == 0) == (event.period == 0)) std::abort();
    if (event.name.empty() || event.label.empty()) std::abort();
    if (event.stack_sample_size % 8 != 0 || event.stack_sample_size > 65528) std::abort();
    if (!(event.value_scale > 0)) std::abort();
    const bool is_tracepoint = event.kind == ddprof::EventSpec::Kind::tracepoint;
    if (is_tracepoint && (event.tracepoint_group.empty() || event.tracepoint_name.empty())) std::abort();
  }
  return 0;
}
