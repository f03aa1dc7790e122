#include "collect/perf/perf_probe.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "collect/event_spec.hpp"
#include "collect/perf/perf_event.hpp"
#include "collect/perf/ring_set.hpp"

namespace ddprof {

namespace {

constexpr std::uint32_t kProbeStackBytes = 8192;

AttrRequest request_of(const EventSpec& spec, const AttrFeatures& features, bool kernel) {
  return {.features = features, .config = spec.config, .stack_bytes = kProbeStackBytes, .kernel = kernel};
}

PerfProbe::Refusal try_task(const EventSpec& spec, const AttrFeatures& features, std::int32_t task,
                            bool kernel) {
  const perf_event_attr attr = task_sampling_attr(spec, request_of(spec, features, kernel));
  return attempt_perf_event(attr, task, kAnyCpu, spec.name).failure;
}

PerfProbe::Refusal try_all(const EventSpec& spec, const AttrFeatures& features, int cpu) {
  const perf_event_attr attr = cpu_sampling_attr(spec, request_of(spec, features, false));
  return attempt_perf_event(attr, kAllTasks, cpu, spec.name).failure;
}

// As a recording does: newer attributes are given up until the kernel understands.
PerfProbe::Refusal try_own(const EventSpec& spec, AttrFeatures& features) {
  while (true) {
    PerfProbe::Refusal refusal = try_task(spec, features, kSelf, false);
    const auto fewer = without_newest(features);
    if (!refusal || obstacle_of(*refusal) != PerfObstacle::unknown_attribute || !fewer) return refusal;
    features = *fewer;
  }
}

// Programs only: threads of the kernel belong to root and have no mappings.
bool is_foreign_program(const std::filesystem::path& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0 || facts.st_uid == ::geteuid()) return false;
  std::string name;
  return static_cast<bool>(std::getline(std::ifstream(folder / "cmdline"), name, '\0')) && !name.empty();
}

bool can_read_maps(const std::filesystem::path& folder) {
  std::ifstream maps(folder / "maps");
  std::string line;
  return static_cast<bool>(std::getline(maps, line));
}

std::int32_t pid_of(const std::filesystem::path& folder) {
  const std::string name = folder.filename();
  std::int32_t pid = 0;
  const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
  return failure == std::errc() && stop == name.data() + name.size() ? pid : 0;
}

// Some processes keep themselves to themselves, even from root: the best of a few tells what is allowed.
std::optional<PerfProbe::Foreign> try_foreign(const EventSpec& spec, const AttrFeatures& features) {
  constexpr std::size_t kTries = 16;
  std::optional<PerfProbe::Foreign> best;
  std::size_t tries = 0;
  std::error_code failure;
  for (std::filesystem::directory_iterator entry("/proc", failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::int32_t pid = pid_of(entry->path());
    if (pid == 0 || !is_foreign_program(entry->path())) continue;
    PerfProbe::Refusal refusal = try_task(spec, features, pid, false);
    if (refusal && obstacle_of(*refusal) == PerfObstacle::no_process) continue;  // it has just ended
    const bool is_better = !best || (best->events && !refusal);
    if (is_better || !refusal) best = {std::move(refusal), can_read_maps(entry->path())};
    if ((!best->events && best->is_readable) || ++tries == kTries) break;
  }
  return best;
}

void try_rings(const std::vector<int>& cpus, const AttrFeatures& features, PerfProbe& probe) {
  RingBudgetInput input = ring_budget_of_this_machine(cpus.size());
  // A recording that may lock little takes smaller stacks, for which smaller rings do. Wanted is what it
  // would take.
  RingBudgetInput free_input = input;
  free_input.may_lock_freely = true;
  input.record_bytes = automatic_stack_bytes(free_input);
  const RingBudget budget = ring_budget(input);
  probe.cpus = cpus.size();
  probe.wanted_ring_bytes = budget.wanted_pages * input.page_bytes;
  auto rings = RingSet::open(cpus, features, budget);
  if (rings)
    probe.ring_bytes = rings->bytes_per_ring();
  else
    probe.ring_problem = rings.error().message;
}

EventSpec cycles_event() {
  EventSpec spec;
  spec.name = "hCPU";
  spec.kind = EventSpec::Kind::hardware;
  spec.config = PERF_COUNT_HW_CPU_CYCLES;
  spec.frequency = 99;
  return spec;
}

}  // namespace

PerfProbe probe_perf() {
  PerfProbe probe;
  AttrFeatures features;
  const EventSpec clock = default_cpu_event();
  probe.own = try_own(clock, features);
  probe.own_kernel = try_task(clock, features, kSelf, true);
  probe.cycles = try_task(cycles_event(), features, kSelf, false);
  probe.foreign = try_foreign(clock, features);
  const std::vector<int> cpus = online_cpus().value_or({0});
  probe.all = try_all(clock, features, cpus.front());
  try_rings(cpus, features, probe);
  return probe;
}

}  // namespace ddprof
