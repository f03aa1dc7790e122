#pragma once

#include <string>
#include <vector>

#include "collect/perf/own_privileges.hpp"
#include "doctor/finding.hpp"
#include "doctor/machine.hpp"
#include "doctor/perf_probe.hpp"

namespace ddprof {

// One thing that people want of a profiler, and how far it works here.
struct Ability {
  std::string name;  // the same in every version
  CheckState state = CheckState::ok;
  std::string title;    // "processes of other users"
  std::string meaning;  // how to have it, how far it goes, or why not
  Cure cure = {};
};

// Own programs, processes of other users, the whole machine, frames of the kernel: in this order.
std::vector<Ability> judge(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe);

}  // namespace ddprof
