#include "collect/perf/privilege_checks.hpp"

#include <array>
#include <vector>

namespace ddprof {

namespace {

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
          .cure = capability_cure(privileges, kMonitor)};
}

}  // namespace

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
  finding.cure = capability_cure(privileges, wanted);
  return finding;
}

Finding check_seccomp(const OwnPrivileges& privileges, const PerfProbe& probe) {
  Finding finding{
      .name = "seccomp", .fact = "no seccomp filter", .meaning = "no system call is kept from ddprof"};
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
  finding.cure = cure_of(*probe.own);
  finding.cure.docker += ", or --security-opt seccomp=PROFILE.json with perf_event_open allowed";
  finding.cure.kubernetes += ", or a securityContext.seccompProfile of type Localhost that allows it";
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
                  .cure = capability_cure(privileges, kPtrace)};
  if (scope >= 3) {
    finding.state = CheckState::missing;
    finding.meaning = "no memory of processes can be read: stacks deeper than the copy stay truncated";
    finding.cure = {.command = "boot with kernel.yama.ptrace_scope below 3: it cannot be lowered"};
  } else if (is_capable) {
    finding.state = CheckState::ok;
    finding.meaning = "memory of all processes can be read, for stacks deeper than the copy";
    finding.cure = {};
  } else if (scope == 2) {
    finding.state = CheckState::missing;
    finding.meaning = "no memory of processes can be read: stacks deeper than the copy stay truncated";
  } else if (scope == 1) {
    finding.meaning = "only children can be read: stacks deeper than the copy may stay truncated";
    finding.cure.command = "sudo sysctl kernel.yama.ptrace_scope=0, or " + finding.cure.command;
  } else {
    finding.meaning = "memory of own processes can be read, for stacks deeper than the copy; of others not";
  }
  return finding;
}

}  // namespace ddprof
