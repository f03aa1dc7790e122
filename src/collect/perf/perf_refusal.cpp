#include "collect/perf/perf_refusal.hpp"

#include <array>
#include <cerrno>

#include "collect/perf/own_privileges.hpp"

namespace ddprof {

namespace {

std::string whom(std::int32_t task) {
  if (task < 0) return " on all processes";
  return task == 0 ? "" : fmt::format(" on task {}", task);
}

// For EACCES and EPERM, which say that, and not who.
PerfObstacle refuser_of(const OpenFailure& failure) {
  const bool may_be_filter = failure.is_seccomp_filtered && failure.error_number == EPERM;
  if (!failure.is_privileged) {
    if (!failure.paranoid) return may_be_filter ? PerfObstacle::seccomp_filter : PerfObstacle::level_unknown;
    const int level = *failure.paranoid;
    if (level > 2) return PerfObstacle::level_forbids;
    if (failure.task < 0 && level > 0) return PerfObstacle::level_own_only;
    if (failure.wants_kernel && level > 1) return PerfObstacle::level_hides_kernel;
  }
  // From here the sysctl allows it, so someone else refused. A seccomp filter refuses the call whatever it
  // asks for, an access check (EACCES) only looks at foreign tasks.
  if (may_be_filter) return PerfObstacle::seccomp_filter;
  return failure.task > 0 ? PerfObstacle::foreign_process : PerfObstacle::security_policy;
}

std::string level_reason(const OpenFailure& failure, std::string_view effect) {
  const std::string_view note =
      failure.has_vain_capability ? " (capabilities of this user namespace do not count)" : "";
  return fmt::format("kernel.perf_event_paranoid is {}, which {}{}", failure.paranoid.value_or(2), effect,
                     note);
}

ErrorCode code_of(PerfObstacle obstacle) {
  switch (obstacle) {
    case PerfObstacle::no_counter:
    case PerfObstacle::no_perf_events:
      return ErrorCode::unsupported;
    case PerfObstacle::no_process:
      return ErrorCode::not_found;
    case PerfObstacle::no_descriptors:
      return ErrorCode::exhausted;
    case PerfObstacle::unknown_attribute:
      return ErrorCode::invalid_argument;
    default:
      return ErrorCode::permission_denied;
  }
}

}  // namespace

Cure cure_with(std::string command, std::span<const std::string_view> capabilities) {
  return {.command = std::move(command),
          .docker = fmt::format("--cap-add {}", fmt::join(capabilities, " --cap-add ")),
          .kubernetes = fmt::format("securityContext.capabilities.add: [{}]", fmt::join(capabilities, ", "))};
}

OpenFailure gather_failure(int error_number, std::string_view what, std::int32_t task, bool wants_kernel) {
  constexpr std::uint64_t kEnough = (std::uint64_t{1} << CAP_SYS_ADMIN) | (std::uint64_t{1} << CAP_PERFMON);
  const OwnPrivileges privileges = own_privileges();
  const bool is_privileged = privileges.may_monitor();
  return {.error_number = error_number,
          .what = std::string(what),
          .task = task,
          .wants_kernel = wants_kernel,
          .paranoid = privileges.paranoid,
          .is_privileged = is_privileged,
          .has_vain_capability = !is_privileged && (privileges.capabilities & kEnough) != 0,
          .is_seccomp_filtered = privileges.is_seccomp_filtered};
}

PerfObstacle obstacle_of(const OpenFailure& failure) {
  switch (failure.error_number) {
    case EACCES:
    case EPERM:
      return refuser_of(failure);
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
      return PerfObstacle::no_counter;
    case ESRCH:
      return PerfObstacle::no_process;
    case EMFILE:
    case ENFILE:
      return PerfObstacle::no_descriptors;
    case E2BIG:
    case EINVAL:
      return PerfObstacle::unknown_attribute;
    case ENOSYS:
      // Some filters answer so; a kernel without perf events has no such sysctl.
      return failure.is_seccomp_filtered && failure.paranoid ? PerfObstacle::seccomp_filter
                                                             : PerfObstacle::no_perf_events;
    default:
      return PerfObstacle::other;
  }
}

Cure cure_of(PerfObstacle obstacle) {
  static constexpr std::array<std::string_view, 1> kMonitor = {"PERFMON"};
  static constexpr std::array<std::string_view, 2> kForeign = {"PERFMON", "SYS_PTRACE"};
  switch (obstacle) {
    case PerfObstacle::level_forbids:
      return cure_with("sudo sysctl kernel.perf_event_paranoid=2, or give ddprof CAP_PERFMON", kMonitor);
    case PerfObstacle::level_own_only:
      return cure_with("run as root, give ddprof CAP_PERFMON, or sudo sysctl kernel.perf_event_paranoid=0",
                       kMonitor);
    case PerfObstacle::level_hides_kernel:
      return cure_with("give ddprof CAP_PERFMON, or sudo sysctl kernel.perf_event_paranoid=1", kMonitor);
    case PerfObstacle::level_unknown:
      return cure_with("mount /proc, or give ddprof CAP_PERFMON", kMonitor);
    case PerfObstacle::seccomp_filter:
      return cure_with(
          "start the container with --cap-add PERFMON or a seccomp profile that allows perf_event_open",
          kMonitor);
    case PerfObstacle::foreign_process:
      return cure_with("run ddprof as that user, as root, or with CAP_PERFMON and CAP_SYS_PTRACE", kForeign);
    case PerfObstacle::security_policy:
      return {.command = "allow perf events in its policy"};
    case PerfObstacle::no_counter:
      return {.command = "virtual machines often have no hardware counters: sCPU works everywhere"};
    case PerfObstacle::no_descriptors:
      return {.command = "raise the limit with ulimit -n; one descriptor is needed per thread, CPU and event",
              .docker = "--ulimit nofile=65536"};
    case PerfObstacle::no_perf_events:
      return {.command = "a kernel with CONFIG_PERF_EVENTS=y"};
    default:
      return {};
  }
}

std::string reason_of(const OpenFailure& failure) {
  switch (obstacle_of(failure)) {
    case PerfObstacle::level_forbids:
      return level_reason(failure, "keeps perf events from ordinary users");
    case PerfObstacle::level_own_only:
      return level_reason(failure, "allows own processes only");
    case PerfObstacle::level_hides_kernel:
      return level_reason(failure, "hides the kernel");
    case PerfObstacle::level_unknown:
      return "refused, and kernel.perf_event_paranoid cannot be read to tell why";
    case PerfObstacle::seccomp_filter:
      return "refused by this container's seccomp filter";
    case PerfObstacle::foreign_process:
      return "the process belongs to another user or may not be traced";
    case PerfObstacle::security_policy:
      return "refused by a security module or kernel lockdown";
    case PerfObstacle::no_counter:
      return "this machine offers no such counter";
    case PerfObstacle::no_process:
      return "no such process";
    case PerfObstacle::no_descriptors:
      return "too many open files";
    case PerfObstacle::unknown_attribute:
      return "this kernel does not know an attribute";
    case PerfObstacle::no_perf_events:
      return "this kernel was built without perf events";
    case PerfObstacle::other:
      break;
  }
  return {};
}

Error explain(const OpenFailure& failure) {
  const PerfObstacle obstacle = obstacle_of(failure);
  const std::string subject = fmt::format("perf_event_open {}{}", failure.what, whom(failure.task));
  if (obstacle == PerfObstacle::other) return errno_error(failure.error_number, subject);
  return {code_of(obstacle), fmt::format("{}: {}", subject, reason_of(failure)), cure_of(obstacle).command};
}

}  // namespace ddprof
