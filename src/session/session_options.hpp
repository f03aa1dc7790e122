#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collect/event_spec.hpp"
#include "collect/target.hpp"
#include "session/budget.hpp"
#include "session/continuity.hpp"
#include "session/cpu_account.hpp"
#include "session/finisher.hpp"
#include "session/namer.hpp"
#include "session/periods.hpp"
#include "session/stack_builder.hpp"
#include "session/summary.hpp"

namespace ddprof {

// What others see of a session while it runs. Each may be null.
struct SessionObserver {
  std::function<void(const SampleEvent&, const BuiltStack&, const ProcessTable&, const FileRegistry&)>
      on_sample;  // --show-samples
  // When a period closes: the summary when it began, and now.
  std::function<void(const Summary& before, const Summary& after)> on_period;
  std::function<void(const std::string&)> say_notice;  // --max-cpu is reached, or is no longer
  std::function<void(const Summary&)> on_progress;     // about once a second, while there is something to do
};

// A session as one of the workers of a run.
struct WorkerRole {
  Continuity* continuity = nullptr;  // shared by the workers; none: there is only this one
  // Whether another worker should go on, rather than all end; asked after `stop`.
  std::function<bool()> is_replaced;
  // How often it was asked for, in the whole run, that a period closes now. None: nobody asks.
  std::function<std::uint32_t()> flushes_wanted;
};

struct SessionOptions {
  std::vector<EventSpec> events;  // as the collector was opened with
  Target target;
  bool has_timeline = false;  // samples with the time at which they were taken, one by one
  std::string service;
  std::vector<std::string> notices;
  PeriodOptions periods;
  BudgetLimits limits;
  ChargedCpu charged_cpu;
  NamerOptions naming;
  std::chrono::milliseconds exit_timeout = Finisher::kLastPatience;  // for the last upload
  // For files, in a second; none: less than rings hold.
  std::optional<std::chrono::milliseconds> most_waiting{};
  WorkerRole worker;
  SessionObserver observer;
  const Clock* clock = &Clock::system();
  OwnUsage (*own_usage)() = read_own_usage;
};

}  // namespace ddprof
