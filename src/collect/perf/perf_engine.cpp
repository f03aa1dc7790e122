#include "collect/perf/perf_engine.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "collect/bpf/thread_context_reader.hpp"
#include "collect/machine.hpp"
#include "collect/perf/perf_checks.hpp"
#include "collect/perf/perf_collector.hpp"
#include "collect/perf/perf_probe.hpp"
#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

namespace {

std::uint64_t memlock_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : 0;
}

// Why what threads publish cannot be read; none: it works.
std::optional<Error> context_refusal(std::size_t cpus) {
  auto opened = ThreadContextReader::open(std::max<std::size_t>(cpus, 1), std::chrono::seconds(1));
  return opened ? std::nullopt : std::optional(std::move(opened).error());
}

}  // namespace

Result<std::unique_ptr<Collector>> PerfEngine::open(const Target& target,
                                                    const EngineOptions& options) const {
  return std::unique_ptr<Collector>(TRY(PerfCollector::open(target, PerfOptions{options})));
}

Result<std::uint32_t> PerfEngine::automatic_stack_bytes(const std::vector<EventSpec>& events) const {
  return ddprof::automatic_stack_bytes(events);
}

EngineAccount PerfEngine::examine() const {
  const Machine machine;
  const OwnPrivileges privileges = own_privileges();
  const PerfProbe probe = probe_perf();
  EngineAccount account;
  account.works = {check_kernel(machine),          check_perf_events(probe),
                   check_kernel_frames(probe),     check_all_processes(probe),
                   check_hardware(machine, probe), check_locked_memory(machine, probe, memlock_limit())};
  account.decides = {check_paranoid(privileges, probe), check_capabilities(privileges),
                     check_seccomp(privileges, probe), check_ptrace(machine, privileges)};
  account.names = {check_kernel_names(machine, privileges)};
  account.improves = {check_sample_rate(machine), check_clock(machine), check_tracefs(machine),
                      check_btf(machine), check_bpf(machine, privileges, context_refusal(probe.cpus))};
  account.abilities = abilities_of(machine, privileges, probe);
  account.can_profile = probe.can_profile();
  return account;
}

}  // namespace ddprof
