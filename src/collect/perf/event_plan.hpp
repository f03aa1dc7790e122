#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collect/engine.hpp"
#include "collect/event_spec.hpp"
#include "collect/perf/perf_event.hpp"
#include "collect/perf/perf_record.hpp"
#include "collect/target.hpp"

namespace ddprof {

// When per-CPU events (root, CAP_PERFMON or perf_event_paranoid <= 0) stand in for inherited per-task events.
enum class PerCpuUse : std::uint8_t {
  when_better,  // programs of short tasks, and -p of more threads than there are descriptors
  never,
  always,  // from the start
};

struct PerfOptions : EngineOptions {  // events of kind allocation are skipped: they belong to the heap engine
  PerCpuUse per_cpu = PerCpuUse::when_better;
};

// One event as it will be opened, in each of the forms that a mode may need.
struct PlannedEvent {
  static constexpr std::uint32_t kSideBandOnly = ~std::uint32_t{0};

  std::uint32_t index = 0;  // into PerfOptions::events
  EventSpec spec;
  perf_event_attr task_attr{};
  perf_event_attr totals_attr{};
  perf_event_attr ticks_attr{};  // of a clock; its period is chosen when it is opened
  perf_event_attr cpu_attr{};
  perf_event_attr counting_attr{};
  RecordLayout layout;  // of both sampling forms

  // Whether tasks too short for its period can be sampled more often.
  [[nodiscard]] bool has_ticks() const { return spec.is_clock && has_fixed_period(); }
  [[nodiscard]] bool has_fixed_period() const { return task_attr.freq == 0 && task_attr.sample_period != 0; }
};

// What this kernel lets this user do, and the events in its terms. The first event carries the side band.
struct EventPlan {
  std::vector<PlannedEvent> events;
  AttrFeatures features;
  bool kernel = false;       // the kernel may be sampled
  bool per_cpu = false;      // all tasks of a CPU may be sampled
  bool has_children = true;  // of the tasks that events are opened on: they inherit them too
  // The first event never fires, so that the others can be switched off.
  [[nodiscard]] bool has_own_side_band() const { return events.front().index == PlannedEvent::kSideBandOnly; }
  std::vector<std::string> notices;
};

Result<EventPlan> make_event_plan(const PerfOptions& options, const Target& target);

}  // namespace ddprof
