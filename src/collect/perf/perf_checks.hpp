#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "collect/perf/perf_probe.hpp"
#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

// Whether perf_event_open works, and how far.
Finding check_perf_events(const PerfProbe& probe);
Finding check_paranoid(const OwnPrivileges& privileges, const PerfProbe& probe);
Finding check_kernel_frames(const PerfProbe& probe);
Finding check_all_processes(const PerfProbe& probe);
Finding check_hardware(const Machine& machine, const PerfProbe& probe);
// `memlock_bytes` is RLIMIT_MEMLOCK.
Finding check_locked_memory(const Machine& machine, const PerfProbe& probe, std::uint64_t memlock_bytes);

// What this process may do, and who stands in its way.
Finding check_capabilities(const OwnPrivileges& privileges);
Finding check_seccomp(const OwnPrivileges& privileges, const PerfProbe& probe);
Finding check_ptrace(const Machine& machine, const OwnPrivileges& privileges);

// kernel_checks.cpp

// What the kernel offers to any user.
Finding check_kernel(const Machine& machine);
Finding check_clock(const Machine& machine);
Finding check_sample_rate(const Machine& machine);
// What it offers to this process.
Finding check_kernel_names(const Machine& machine, const OwnPrivileges& privileges);
Finding check_tracefs(const Machine& machine);
Finding check_btf(const Machine& machine);
// `refusal`: why the program that reads what threads publish cannot be had; none: it can.
Finding check_bpf(const Machine& machine, const OwnPrivileges& privileges,
                  const std::optional<Error>& refusal);

// What all that means for the user: how far each thing works that people want of a profiler.

// Own programs, processes of other users, the whole machine, frames of the kernel: in this order.
std::vector<Ability> abilities_of(const Machine& machine, const OwnPrivileges& privileges,
                                  const PerfProbe& probe);

}  // namespace ddprof
