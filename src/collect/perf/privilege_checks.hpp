#pragma once

#include <string>

#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "collect/perf/own_privileges.hpp"
#include "collect/perf/perf_probe.hpp"

namespace ddprof {

// What this process may do, and who stands in its way.
Finding check_capabilities(const OwnPrivileges& privileges);
Finding check_seccomp(const OwnPrivileges& privileges, const PerfProbe& probe);
Finding check_ptrace(const Machine& machine, const OwnPrivileges& privileges);

}  // namespace ddprof
