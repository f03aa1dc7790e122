#include "doctor/verdict.hpp"

#include <utility>

#include "doctor/kernel_checks.hpp"
#include "doctor/place_checks.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kUnreadable =
    "samples, but without names: the files of other users' processes need CAP_SYS_PTRACE";

std::string why_refused(const OpenFailure& failure) {
  return obstacle_of(failure) == PerfObstacle::other ? explain(failure).message : reason_of(failure);
}

Ability judge_own(const PerfProbe& probe) {
  Ability ability{"own-programs", CheckState::ok, "your own programs",
                  "ddprof record PROGRAM, ddprof PROGRAM, ddprof -p PID"};
  if (probe.can_profile()) return ability;
  ability.state = CheckState::missing;
  ability.sentence = probe.own ? why_refused(*probe.own) : probe.ring_problem;
  return ability;
}

Ability judge_foreign(const OwnPrivileges& privileges, const PerfProbe& probe) {
  Ability ability{"other-users", CheckState::ok, "processes of other users", "ddprof -p PID"};
  const bool is_refused = probe.foreign ? probe.foreign->events.has_value() : !privileges.may_monitor();
  const bool is_readable = probe.foreign ? probe.foreign->is_readable : privileges.has(CAP_SYS_PTRACE);
  if (is_refused || !probe.can_profile()) {
    ability.state = CheckState::missing;
    ability.sentence = probe.foreign && probe.foreign->events
                           ? why_refused(*probe.foreign->events)
                           : "needs CAP_PERFMON and CAP_SYS_PTRACE, or root";
  } else if (!is_readable) {
    ability.state = CheckState::limited;
    ability.sentence = kUnreadable;
  }
  return ability;
}

Ability judge_host(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe) {
  Ability ability{"whole-host", CheckState::ok, "the whole machine", "ddprof -g"};
  if (probe.all || !probe.can_profile()) {
    ability.state = CheckState::missing;
    ability.sentence = probe.all ? why_refused(*probe.all) : "see your own programs";
  } else if (!is_in_first_pid_namespace(machine)) {
    ability.state = CheckState::limited;
    ability.sentence = "only processes of this PID namespace are known by name";
  } else if (!privileges.has(CAP_SYS_PTRACE)) {
    ability.state = CheckState::limited;
    ability.sentence = kUnreadable;
  }
  return ability;
}

Ability judge_kernel(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe) {
  Ability ability{"kernel-frames", CheckState::ok, "frames of the kernel", "with names"};
  if (probe.own_kernel || !probe.can_profile()) {
    ability.state = CheckState::missing;
    ability.sentence = probe.own_kernel ? why_refused(*probe.own_kernel) : "see your own programs";
  } else if (check_kernel_names(machine, privileges).state != CheckState::ok) {
    ability.state = CheckState::limited;
    ability.sentence = "without names";
  }
  return ability;
}

}  // namespace

std::vector<Ability> judge(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe) {
  return {judge_own(probe), judge_foreign(privileges, probe), judge_host(machine, privileges, probe),
          judge_kernel(machine, privileges, probe)};
}

}  // namespace ddprof
