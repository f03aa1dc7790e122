#include "collect/perf/perf_checks.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include "collect/perf/ring_budget.hpp"

namespace ddprof {

namespace {

Ability missing(Ability ability, const OpenFailure& failure) {
  const PerfObstacle obstacle = obstacle_of(failure);
  ability.state = CheckState::missing;
  ability.meaning = obstacle == PerfObstacle::other ? explain(failure).message : reason_of(failure);
  ability.cure = cure_of(failure);
  return ability;
}

Ability limited(Ability ability, std::string_view meaning, Cure cure) {
  ability.state = CheckState::limited;
  ability.meaning = meaning;
  ability.cure = std::move(cure);
  return ability;
}

// Without events there is nothing; and rings are for all.
Ability without_rings(Ability ability, const PerfProbe& probe) {
  ability.state = CheckState::missing;
  ability.meaning = probe.ring_problem;
  ability.cure = {.command = lock_more_command(probe.wanted_ring_bytes)};
  return ability;
}

// Opening events is one thing, and reading what the addresses mean another.
Ability with_their_files(Ability ability, const OwnPrivileges& privileges, const PerfProbe& probe) {
  static constexpr std::array<int, 1> kPtrace = {CAP_SYS_PTRACE};
  if (privileges.has(CAP_SYS_PTRACE)) return ability;
  Cure cure = capability_cure(privileges, kPtrace);
  // As of Linux 6.14 CAP_PERFMON is enough for /proc/PID/maps.
  const bool has_maps = probe.foreign && !probe.foreign->events && probe.foreign->is_readable;
  if (!has_maps)
    return limited(std::move(ability), "what others loaded before has no names", std::move(cure));
  return limited(std::move(ability), "files of others in containers and private folders have no names",
                 std::move(cure));
}

Ability judge_own(const PerfProbe& probe) {
  Ability ability{"own-programs", CheckState::ok, "your own programs",
                  "ddprof record PROGRAM, ddprof PROGRAM, ddprof -p PID"};
  if (probe.own) return missing(std::move(ability), *probe.own);
  return probe.can_profile() ? ability : without_rings(std::move(ability), probe);
}

Ability judge_foreign(const OwnPrivileges& privileges, const PerfProbe& probe) {
  Ability ability{"other-users", CheckState::ok, "processes of other users", "ddprof -p PID"};
  if (probe.own) return missing(std::move(ability), *probe.own);
  if (!probe.can_profile()) return without_rings(std::move(ability), probe);
  const bool is_refused = probe.foreign ? probe.foreign->events.has_value() : !privileges.may_monitor();
  if (!is_refused) return with_their_files(std::move(ability), privileges, probe);
  ability.state = CheckState::missing;
  ability.meaning = "needs CAP_PERFMON and CAP_SYS_PTRACE, or root";
  if (!privileges.is_in_first_user_namespace) ability.meaning += ", outside of this user namespace";
  const OpenFailure any{.error_number = EACCES, .task = 1, .is_foreign = true, .own = privileges};
  ability.cure = cure_of(probe.foreign ? *probe.foreign->events : any);
  return ability;
}

Ability judge_host(const OwnPrivileges& privileges, const PerfProbe& probe) {
  Ability ability{std::string(kWholeHostAbility), CheckState::ok, "the whole machine", "ddprof -g"};
  if (probe.all) return missing(std::move(ability), *probe.all);
  if (!probe.can_profile()) return without_rings(std::move(ability), probe);
  return with_their_files(std::move(ability), privileges, probe);
}

Ability judge_kernel(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe) {
  Ability ability{"kernel-frames", CheckState::ok, "frames of the kernel", "with names"};
  if (probe.own_kernel) return missing(std::move(ability), *probe.own_kernel);
  if (!probe.can_profile()) return without_rings(std::move(ability), probe);
  Finding names = check_kernel_names(machine, privileges);
  if (names.state == CheckState::ok) return ability;
  return limited(std::move(ability), "without names", std::move(names.cure));
}

}  // namespace

std::vector<Ability> judge(const Machine& machine, const OwnPrivileges& privileges, const PerfProbe& probe) {
  return {judge_own(probe), judge_foreign(privileges, probe), judge_host(privileges, probe),
          judge_kernel(machine, privileges, probe)};
}

}  // namespace ddprof
