#pragma once

#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "collect/perf/own_privileges.hpp"
#include "collect/perf/perf_probe.hpp"

namespace ddprof {

// Whether perf_event_open works, and how far.
Finding check_perf_events(const PerfProbe& probe);
Finding check_paranoid(const OwnPrivileges& privileges, const PerfProbe& probe);
Finding check_kernel_frames(const PerfProbe& probe);
Finding check_all_processes(const PerfProbe& probe);
Finding check_hardware(const Machine& machine, const PerfProbe& probe);
// `memlock_bytes` is RLIMIT_MEMLOCK.
Finding check_locked_memory(const Machine& machine, const PerfProbe& probe, std::uint64_t memlock_bytes);

}  // namespace ddprof
