#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "collect/target.hpp"
#include "process/file_registry.hpp"
#include "process/process_table.hpp"
#include "session/continuity.hpp"
#include "session/finisher.hpp"
#include "session/namer.hpp"
#include "session/stack_builder.hpp"
#include "session/summary.hpp"

namespace ddprof {

struct SessionOptions {
  std::vector<EventSpec> events;  // as the collector was opened with
  Target target;
  std::optional<std::chrono::seconds> period;  // close a profile this often; none: one for the whole run
  // Only so much of every period is looked at, from its beginning; none: all of it. The collector was opened
  // with pauses.
  std::optional<std::chrono::seconds> window;
  std::optional<std::chrono::seconds> duration;  // stop after this long
  bool has_timeline = false;                     // samples with the time at which they were taken, one by one
  std::chrono::milliseconds exit_timeout = Finisher::kLastPatience;  // for the last upload
  NamerOptions naming;
  double max_cpu = 0;                    // share of one core that the profiler may use; 0: any
  std::uint64_t max_memory = 0;          // bytes; 0: any
  std::uint64_t periods_per_worker = 0;  // then another worker is asked for; 0: never
  // Whether another worker should go on, rather than all end; asked after `stop`.
  std::function<bool()> is_replaced;
  Continuity* continuity = nullptr;  // shared by the workers of one run; none: there is only this one
  std::string service;
  std::vector<std::string> notices;
  // CPU time that the kernel has charged to the target, where it can be asked for; given what the collector
  // counted.
  std::function<std::int64_t(std::int64_t counted, bool is_final)> charged_cpu;
  // The charge is known to the microsecond when the target has ended. If not, it is asked for now and then,
  // so that the last answer is fresh by then.
  bool is_charge_exact = false;
  std::function<void(const SampleEvent&, const BuiltStack&, const ProcessTable&, const FileRegistry&)>
      on_sample;  // --show-samples
  std::function<void(const SampleEvent&, const Stack&, const ModuleMap&, const RuleDictionary&,
                     const FileRegistry&)>
      on_stack;  // stack cases
  // When a period closes: the summary when it began, and now.
  std::function<void(const Summary& before, const Summary& after)> on_period;
  std::function<void(const std::string&)> say_notice;  // --max-cpu is reached, or is no longer
  std::function<void(const Summary&)> on_progress;     // about once a second, while there is something to do
};

}  // namespace ddprof
