#include "collect/perf/perf_checks.hpp"

#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "collect/perf/ring_set.hpp"

namespace ddprof {

namespace {

// A finding about one attempt: what works, or why it does not and what helps.
Finding of_attempt(std::string name, const PerfProbe::Refusal& refusal, std::string_view works,
                   std::string_view otherwise) {
  Finding finding{.name = std::move(name), .fact = "allowed", .meaning = std::string(works)};
  if (!refusal) return finding;
  finding.state = CheckState::missing;
  finding.fact =
      obstacle_of(*refusal) == PerfObstacle::other ? explain(*refusal).message : reason_of(*refusal);
  finding.meaning = otherwise;
  finding.hint = hint_for(*refusal);
  return finding;
}

std::string kibibytes(std::uint64_t bytes) { return fmt::format("{} KiB", bytes / 1024); }

struct KnownCapability {
  int number;
  std::string_view name;
  std::string_view purpose;  // for which this version wants it
  bool is_wanted;
};

constexpr auto kKnown = std::to_array<KnownCapability>({
    {CAP_SYS_ADMIN, "SYS_ADMIN", "", false},  // includes PERFMON, BPF and CHECKPOINT_RESTORE
    {CAP_PERFMON, "PERFMON", "the kernel, all processes", true},
    {CAP_BPF, "BPF", "traces of samples", true},
    {CAP_SYS_PTRACE, "SYS_PTRACE", "files and memory of other users' processes", true},
    {CAP_IPC_LOCK, "IPC_LOCK", "rings of full size", true},
    {CAP_SYSLOG, "SYSLOG", "names of the kernel", true},
    {CAP_CHECKPOINT_RESTORE, "CHECKPOINT_RESTORE", "deleted or replaced programs", true},
    {CAP_SYS_RESOURCE, "SYS_RESOURCE", "", false},
});

bool has_or_includes(const OwnPrivileges& privileges, const KnownCapability& capability) {
  const bool is_included = capability.number == CAP_PERFMON || capability.number == CAP_BPF ||
                           capability.number == CAP_CHECKPOINT_RESTORE;
  return privileges.has(capability.number) || (is_included && privileges.has(CAP_SYS_ADMIN));
}

Finding of_user_namespace(const OwnPrivileges& privileges) {
  static constexpr std::array<int, 1> kMonitor = {CAP_PERFMON};
  return {.name = "capabilities",
          .state = CheckState::missing,
          .fact = "capabilities of a user namespace",
          .meaning = "the kernel does not count them for perf events, so that what everybody may do is left",
          .hint = capability_hint(privileges, kMonitor)};
}

}  // namespace

Finding check_perf_events(const PerfProbe& probe) {
  return of_attempt("perf-events", probe.own, "CPU time of own programs can be sampled",
                    "nothing can be sampled: programs run unprofiled");
}

Finding check_paranoid(const OwnPrivileges& privileges, const PerfProbe& probe) {
  Finding finding{.name = "paranoid"};
  if (!privileges.paranoid) {
    finding.state = CheckState::limited;
    finding.fact = "kernel.perf_event_paranoid cannot be read";
    finding.meaning = "what is allowed shows only when it is tried";
    return finding;
  }
  const int level = *privileges.paranoid;
  // What would be refused at this level.
  OpenFailure all{.error_number = EACCES, .task = -1, .own = privileges};
  OpenFailure kernel{.error_number = EACCES, .wants_kernel = true, .own = privileges};
  finding.fact = fmt::format("kernel.perf_event_paranoid is {}", level);
  if (privileges.may_monitor()) {
    finding.meaning = "does not bind this process, which has CAP_PERFMON or CAP_SYS_ADMIN";
  } else if (probe.own && probe.own->is_refused_by_filter) {
    finding.state = CheckState::limited;
    finding.meaning = "is not asked: a seccomp filter refuses the call before";
  } else if (level <= 0) {
    finding.meaning = "everybody may sample all processes, with the kernel";
  } else if (level == 1) {
    finding.state = CheckState::limited;
    finding.meaning = "own processes, with the kernel, but not the whole machine";
    finding.hint = hint_for(all);
  } else if (level == 2 ||
             !probe.own) {  // levels above 2 mean something on the kernels of some distributions
    finding.state = CheckState::limited;
    finding.meaning = "own processes, without the kernel";
    finding.hint = hint_for(kernel);
  } else {
    finding.state = CheckState::missing;
    finding.meaning = "no perf events for ordinary users";
    finding.hint = hint_for(*probe.own);
  }
  return finding;
}

Finding check_kernel_frames(const PerfProbe& probe) {
  return of_attempt("kernel-frames", probe.own_kernel, "time in the kernel is sampled, with its frames",
                    "time in the kernel is counted, but has no samples and no frames");
}

Finding check_all_processes(const PerfProbe& probe) {
  return of_attempt("all-processes", probe.all, "-g works, and tasks shorter than a period have samples",
                    "-g does not work, and tasks shorter than a period have no samples");
}

Finding check_hardware(const Machine& machine, const PerfProbe& probe) {
  Finding finding =
      of_attempt("hardware", probe.cycles, "hardware events (hCPU, hINST, …) can be sampled",
                 "no hardware events (hCPU, hINST, …); CPU time (sCPU), the default, needs none");
  if (!probe.cycles || obstacle_of(*probe.cycles) != PerfObstacle::no_counter) return finding;
  const std::string processor = machine.text("/proc/cpuinfo").value_or("");
  const bool is_virtual = processor.find(" hypervisor") != std::string::npos;
  finding.fact = is_virtual ? "a virtual machine without hardware counters" : "no hardware counters";
  finding.hint = {.command = is_virtual
                                 ? "give the virtual machine a PMU (libvirt: <pmu state='on'/>), or use "
                                   "bare metal"
                                 : "a kernel with the driver for this CPU's counters"};
  return finding;
}

Finding check_locked_memory(const Machine& machine, const PerfProbe& probe, std::uint64_t memlock_bytes) {
  const auto free_kib = machine.number("/proc/sys/kernel/perf_event_mlock_kb");
  const std::string limit = memlock_bytes == RLIM_INFINITY ? "unlimited" : kibibytes(memlock_bytes);
  Finding finding{.name = "locked-memory"};
  finding.fact = fmt::format("kernel.perf_event_mlock_kb is {}, ulimit -l {}",
                             free_kib ? std::to_string(*free_kib) : "unknown", limit);
  finding.hint = {lock_more_command(probe.wanted_ring_bytes), "--ulimit memlock=-1 or --cap-add IPC_LOCK",
                  "securityContext.capabilities.add: [IPC_LOCK]"};
  if (probe.ring_bytes == 0) {
    finding.state = CheckState::missing;
    finding.meaning = "no ring for samples: " + probe.ring_problem;
    if (probe.own) finding.hint = {};  // it fails for the reason that perf-events has
  } else if (probe.ring_bytes < probe.wanted_ring_bytes) {
    finding.state = CheckState::limited;
    finding.meaning = fmt::format("rings of {} per CPU instead of {}, samples may be lost under load",
                                  kibibytes(probe.ring_bytes), kibibytes(probe.wanted_ring_bytes));
  } else {
    finding.meaning = fmt::format("rings of full size, {} per CPU", kibibytes(probe.ring_bytes));
    finding.hint = {};
  }
  return finding;
}

Finding check_capabilities(const OwnPrivileges& privileges) {
  if (!privileges.is_in_first_user_namespace && privileges.capabilities != 0)
    return of_user_namespace(privileges);
  std::vector<std::string_view> held;
  std::vector<int> wanted;
  std::string purposes;
  for (const KnownCapability& capability : kKnown) {
    if (privileges.has(capability.number)) held.push_back(capability.name);
    if (!capability.is_wanted || has_or_includes(privileges, capability)) continue;
    wanted.push_back(capability.number);
    purposes += fmt::format("{}{} ({})", purposes.empty() ? "" : ", ", capability.name, capability.purpose);
  }
  Finding finding{.name = "capabilities"};
  finding.fact = held.empty() ? "none" : fmt::format("{}", fmt::join(held, ", "));
  if (wanted.empty()) {
    finding.meaning = "all that ddprof has a use for";
    return finding;
  }
  finding.state = held.empty() ? CheckState::missing : CheckState::limited;
  finding.meaning = "lacks " + purposes;
  finding.hint = capability_hint(privileges, wanted);
  return finding;
}

Finding check_seccomp(const OwnPrivileges& privileges, const PerfProbe& probe) {
  Finding finding{
      .name = "seccomp", .fact = "no seccomp filter", .meaning = "no system call is forbidden to ddprof"};
  if (!privileges.is_seccomp_filtered) return finding;
  finding.fact = "a seccomp filter";
  if (!probe.own) {
    finding.meaning = "it lets perf_event_open through";
    return finding;
  }
  if (obstacle_of(*probe.own) != PerfObstacle::seccomp_filter) {
    finding.state = CheckState::limited;
    finding.meaning = "perf_event_open fails already without it; whether it would refuse is not known";
    return finding;
  }
  finding.state = CheckState::missing;
  finding.meaning = "it refuses perf_event_open, whatever sysctls and users allow";
  finding.hint = hint_for(*probe.own);
  finding.hint.docker += ", or --security-opt seccomp=PROFILE.json with perf_event_open allowed";
  finding.hint.kubernetes += ", or a securityContext.seccompProfile of type Localhost that allows it";
  return finding;
}

Finding check_ptrace(const Machine& machine, const OwnPrivileges& privileges) {
  static constexpr std::array<int, 1> kPtrace = {CAP_SYS_PTRACE};
  const auto yama = machine.number("/proc/sys/kernel/yama/ptrace_scope");
  const std::int64_t scope = yama.value_or(0);
  const bool is_capable = privileges.has(CAP_SYS_PTRACE);
  Finding finding{.name = "ptrace",
                  .state = CheckState::limited,
                  .fact = yama ? fmt::format("kernel.yama.ptrace_scope is {}", scope) : "no Yama",
                  .hint = capability_hint(privileges, kPtrace)};
  if (scope >= 3) {
    finding.state = CheckState::missing;
    finding.meaning = "no memory of processes can be read: stacks deeper than the copy stay truncated";
    finding.hint = {.command = "boot with kernel.yama.ptrace_scope below 3: it cannot be lowered"};
  } else if (is_capable) {
    finding.state = CheckState::ok;
    finding.meaning = "memory of all processes can be read, for stacks deeper than the copy";
    finding.hint = {};
  } else if (scope == 2) {
    finding.state = CheckState::missing;
    finding.meaning = "no memory of processes can be read: stacks deeper than the copy stay truncated";
  } else if (scope == 1) {
    finding.meaning = "only children can be read: stacks deeper than the copy may stay truncated";
    finding.hint.command = "sudo sysctl kernel.yama.ptrace_scope=0, or " + finding.hint.command;
  } else {
    finding.meaning = "memory of own processes can be read, for stacks deeper than the copy; of others not";
  }
  return finding;
}

namespace {

Ability missing(Ability ability, const OpenFailure& failure) {
  const PerfObstacle obstacle = obstacle_of(failure);
  ability.state = CheckState::missing;
  ability.meaning = obstacle == PerfObstacle::other ? explain(failure).message : reason_of(failure);
  ability.hint = hint_for(failure);
  return ability;
}

Ability limited(Ability ability, std::string_view meaning, Hint hint) {
  ability.state = CheckState::limited;
  ability.meaning = meaning;
  ability.hint = std::move(hint);
  return ability;
}

// Without events there is nothing; and rings are for all.
Ability without_rings(Ability ability, const PerfProbe& probe) {
  ability.state = CheckState::missing;
  ability.meaning = probe.ring_problem;
  ability.hint = {.command = lock_more_command(probe.wanted_ring_bytes)};
  return ability;
}

// Opening events is one thing, and reading what the addresses mean another.
Ability with_their_files(Ability ability, const OwnPrivileges& privileges, const PerfProbe& probe) {
  static constexpr std::array<int, 1> kPtrace = {CAP_SYS_PTRACE};
  if (privileges.has(CAP_SYS_PTRACE)) return ability;
  Hint hint = capability_hint(privileges, kPtrace);
  // As of Linux 6.14 CAP_PERFMON is enough for /proc/PID/maps.
  const bool has_maps = probe.foreign && !probe.foreign->events && probe.foreign->is_readable;
  if (!has_maps)
    return limited(std::move(ability), "what others loaded before has no names", std::move(hint));
  return limited(std::move(ability), "files of others in containers and private folders have no names",
                 std::move(hint));
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
  ability.hint = hint_for(probe.foreign ? *probe.foreign->events : any);
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
  return limited(std::move(ability), "without names", std::move(names.hint));
}

}  // namespace

std::vector<Ability> abilities_of(const Machine& machine, const OwnPrivileges& privileges,
                                  const PerfProbe& probe) {
  return {judge_own(probe), judge_foreign(privileges, probe), judge_host(privileges, probe),
          judge_kernel(machine, privileges, probe)};
}

}  // namespace ddprof
