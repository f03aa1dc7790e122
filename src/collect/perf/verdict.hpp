#pragma once

#include <vector>

#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "collect/perf/own_privileges.hpp"
#include "collect/perf/perf_probe.hpp"

namespace ddprof {

// Own programs, processes of other users, the whole machine, frames of the kernel: in this order.
std::vector<Ability> judge(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe);

}  // namespace ddprof
