#include "collect/perf/perf_collector.hpp"

#include <algorithm>

#include "collect/perf/cpu_list.hpp"
#include "collect/perf/perf_engine.hpp"

namespace ddprof {

namespace {

std::uint64_t samples_per_second(const EventSpec& spec) {
  constexpr std::uint64_t kGuessForCounts = 100;
  if (spec.frequency != 0) return spec.frequency;
  if (spec.is_clock && spec.period != 0) return 1'000'000'000 / spec.period;
  return kGuessForCounts;
}

RingBudget budget_for(const EventPlan& plan, std::size_t cpus) {
  constexpr std::uint64_t kBesidesStack = 2048;  // registers and a full chain of kernel frames
  RingBudgetInput input = ring_budget_of_this_machine(cpus);
  input.samples_per_second = 0;
  input.record_bytes = 0;
  for (const PlannedEvent& event : plan.events) {
    input.samples_per_second += samples_per_second(event.spec);
    input.record_bytes = std::max(input.record_bytes, event.task_attr.sample_stack_user + kBesidesStack);
  }
  return ring_budget(input);
}

}  // namespace

Result<std::uint32_t> automatic_stack_bytes(const std::vector<EventSpec>& events) {
  const std::vector<int> cpus = TRY(online_cpus());
  RingBudgetInput input = ring_budget_of_this_machine(cpus.size());
  input.samples_per_second = 0;
  for (const EventSpec& spec : events) input.samples_per_second += samples_per_second(spec);
  return automatic_stack_bytes(input);
}

Result<std::unique_ptr<PerfCollector>> PerfCollector::open(const Target& target, const PerfOptions& wanted) {
  std::vector<int> cpus = TRY(online_cpus());
  PerfOptions options = wanted;
  if (options.stack_bytes == 0) options.stack_bytes = TRY(automatic_stack_bytes(options.events));
  EventPlan plan = TRY(make_event_plan(options, target));
  PerfClock clock = TRY(PerfClock::calibrate(plan.features));
  raise_descriptor_limit(descriptors_needed(1, cpus.size(), plan.events.size()));
  RingSet rings = TRY(RingSet::open(cpus, plan.features, budget_for(plan, cpus.size())));
  // Totals are worth a little locked memory, but nothing depends on them.
  RingSet totals_rings;
  if (!target.is_host()) {
    constexpr std::size_t kTotalsPages = 64;  // four thousand ends of tasks
    auto opened = RingSet::open(cpus, plan.features, {.wanted_pages = kTotalsPages, .pages = kTotalsPages});
    if (opened.ok()) totals_rings = std::move(opened).value();
  }
  auto engine = std::make_unique<PerfEngine>(target, options, std::move(plan), std::move(rings),
                                             std::move(totals_rings), clock);
  TRY(engine->start());
  return std::unique_ptr<PerfCollector>(std::move(engine));
}

}  // namespace ddprof
