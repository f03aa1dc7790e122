#include "collect/perf/perf_refusal.hpp"

#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace ddprof {

namespace {

constexpr int kSeccompFilter = 2;  // SECCOMP_MODE_FILTER
// PROC_USER_INIT_INO, the same on every kernel.
constexpr std::string_view kFirstUserNamespace = "user:[4026531837]";

std::uint64_t number_after(std::string_view line, std::size_t start, int base) {
  std::uint64_t value = 0;
  start = line.find_first_not_of(" \t", start);
  if (start != std::string_view::npos)
    std::from_chars(line.data() + start, line.data() + line.size(), value, base);
  return value;
}

void read_status(const std::string& path, OwnPrivileges& privileges) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = std::string_view(line).substr(0, colon);
    if (key == "CapEff") privileges.capabilities = number_after(line, colon + 1, 16);
    if (key == "CapBnd") privileges.bounding = number_after(line, colon + 1, 16);
    if (key == "NoNewPrivs") privileges.has_no_new_privileges = number_after(line, colon + 1, 10) == 1;
    if (key == "Seccomp")
      privileges.is_seccomp_filtered = number_after(line, colon + 1, 10) == kSeccompFilter;
  }
}

bool is_first_user_namespace(const std::string& path) {
  std::array<char, 64> target;
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  // Kernels without user namespaces have no such link.
  return size < 0 || std::string_view(target.data(), static_cast<std::size_t>(size)) == kFirstUserNamespace;
}

}  // namespace

OwnPrivileges own_privileges(const std::string& root) {
  OwnPrivileges privileges;
  std::ifstream file(root + "/proc/sys/kernel/perf_event_paranoid");
  if (int level = 0; file >> level) privileges.paranoid = level;
  read_status(root + "/proc/self/status", privileges);
  privileges.is_root = ::geteuid() == 0;
  std::error_code unreadable;
  const auto executable = std::filesystem::read_symlink(root + "/proc/self/exe", unreadable);
  if (!unreadable) privileges.executable = executable.string();
  privileges.is_in_first_user_namespace = is_first_user_namespace(root + "/proc/self/ns/user");
  return privileges;
}

namespace {

std::string whom(std::int32_t task) {
  if (task < 0) return " on all processes";
  return task == 0 ? "" : fmt::format(" on task {}", task);
}

// For EACCES and EPERM, which say that, and not who.
PerfObstacle refuser_of(const OpenFailure& failure) {
  if (failure.is_refused_by_filter) return PerfObstacle::seccomp_filter;
  if (!failure.own.may_monitor()) {
    // No level is enough for that.
    if (failure.is_foreign) return PerfObstacle::foreign_process;
    if (!failure.own.paranoid) return PerfObstacle::level_unknown;
    const int level = *failure.own.paranoid;
    if (level > 2) return PerfObstacle::level_forbids;
    if (failure.task < 0 && level > 0) return PerfObstacle::level_own_only;
    if (failure.wants_kernel && level > 1) return PerfObstacle::level_hides_kernel;
  }
  // The sysctl allows it, so another check refused. That for access is about tasks only.
  return failure.task > 0 ? PerfObstacle::foreign_process : PerfObstacle::security_policy;
}

std::string level_reason(const OpenFailure& failure, std::string_view effect) {
  const std::string_view note =
      failure.own.is_in_first_user_namespace ? "" : " (capabilities of this user namespace do not count)";
  return fmt::format("kernel.perf_event_paranoid is {}, which {}{}", failure.own.paranoid.value_or(2), effect,
                     note);
}

std::string sysctl_command(int level) {
  return fmt::format("sudo sysctl kernel.perf_event_paranoid={}", level);
}

// "PERFMON", as Docker and Kubernetes write it.
std::string_view capability_name(int capability) {
  switch (capability) {
    case CAP_PERFMON:
      return "PERFMON";
    case CAP_BPF:
      return "BPF";
    case CAP_SYS_PTRACE:
      return "SYS_PTRACE";
    case CAP_IPC_LOCK:
      return "IPC_LOCK";
    case CAP_SYSLOG:
      return "SYSLOG";
    case CAP_CHECKPOINT_RESTORE:
      return "CHECKPOINT_RESTORE";
    default:
      return "SYS_ADMIN";
  }
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char letter) { return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter; });
  return text;
}

// The kernel checks the flags first, before any permission, so that only a filter answers otherwise.
bool does_filter_refuse() {
  constexpr unsigned long kNoSuchFlags = ~0UL;
  perf_event_attr attr{};
  attr.size = sizeof attr;
  return ::syscall(SYS_perf_event_open, &attr, 0, -1, -1, kNoSuchFlags) < 0 && errno != EINVAL;
}

bool is_of_another_user(std::int32_t task) {
  struct stat facts {};
  return task > 0 && ::stat(fmt::format("/proc/{}", task).c_str(), &facts) == 0 &&
         facts.st_uid != ::geteuid();
}

// Where a filter is gone, the level may still be in the way.
Hint hint_for_filter(const OpenFailure& failure) {
  static constexpr std::array<int, 1> kMonitor = {CAP_PERFMON};
  Hint hint = capability_hint(failure.own, kMonitor);
  hint.command =
      "allow perf_event_open in the seccomp filter: --cap-add PERFMON for a container, "
      "SystemCallFilter=perf_event_open for a systemd unit";
  if (!failure.own.may_monitor() && failure.own.paranoid.value_or(2) > level_for(failure))
    hint.command +=
        fmt::format("; without CAP_PERFMON also {} on the host", sysctl_command(level_for(failure)));
  return hint;
}

Hint hint_for_foreign(const OpenFailure& failure) {
  static constexpr std::array<int, 2> kForeign = {CAP_PERFMON, CAP_SYS_PTRACE};
  Hint hint = capability_hint(failure.own, kForeign);
  const bool may_its_user = failure.own.paranoid.value_or(2) <= 2;
  if (!failure.own.is_in_first_user_namespace)
    hint.command += may_its_user ? ", or as the user of the process" : "";
  else if (may_its_user || !failure.own.is_root)
    hint.command = fmt::format("run ddprof as {}{}{}, or {}", failure.own.is_root ? "" : "root",
                               may_its_user && !failure.own.is_root ? " or as " : "",
                               may_its_user ? "the user of the process" : "", hint.command);
  return hint;
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

std::string kernel_frames_need(const OwnPrivileges& own) {
  return own.is_in_first_user_namespace
             ? "CAP_PERFMON or kernel.perf_event_paranoid <= 1"
             : "kernel.perf_event_paranoid <= 1 on the host, or root outside of this user namespace";
}

Hint capability_hint(const OwnPrivileges& own, std::span<const int> capabilities, std::string_view sysctl) {
  std::vector<std::string_view> names;
  for (const int capability : capabilities) names.push_back(capability_name(capability));
  Hint hint{.docker = fmt::format("--cap-add {}", fmt::join(names, " --cap-add ")),
            .kubernetes = fmt::format("securityContext.capabilities.add: [{}]", fmt::join(names, ", "))};
  const bool may_gain =
      std::all_of(capabilities.begin(), capabilities.end(), [&](int one) { return own.may_gain(one); });
  // A container and a service have what they were started with.
  std::string gain =
      fmt::format("start this container or service with CAP_{}", fmt::join(names, " and CAP_"));
  if (may_gain) {
    gain = fmt::format("sudo setcap {}+ep {}", lower_case(fmt::format("cap_{}", fmt::join(names, ",cap_"))),
                       own.executable);
  } else if (!own.is_in_first_user_namespace) {
    gain = "run ddprof as root outside of this user namespace";
    hint.docker += ", and a daemon that is not rootless and has no userns-remap";
    hint.kubernetes += ", and hostUsers: true";
  }
  hint.command =
      sysctl.empty() ? gain : fmt::format("{}{}, or {}", sysctl, may_gain ? "" : " on the host", gain);
  return hint;
}

OpenFailure gather_failure(int error_number, std::string_view what, std::int32_t task, bool wants_kernel) {
  OpenFailure failure{.error_number = error_number,
                      .what = std::string(what),
                      .task = task,
                      .wants_kernel = wants_kernel,
                      .is_foreign = is_of_another_user(task),
                      .own = own_privileges()};
  failure.is_refused_by_filter = failure.own.is_seccomp_filtered && does_filter_refuse();
  return failure;
}

int level_for(const OpenFailure& failure) { return failure.task < 0 ? 0 : failure.wants_kernel ? 1 : 2; }

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
      return failure.is_refused_by_filter && failure.own.paranoid ? PerfObstacle::seccomp_filter
                                                                  : PerfObstacle::no_perf_events;
    default:
      return PerfObstacle::other;
  }
}

Hint hint_for(const OpenFailure& failure) {
  static constexpr std::array<int, 1> kMonitor = {CAP_PERFMON};
  switch (obstacle_of(failure)) {
    case PerfObstacle::level_forbids:
    case PerfObstacle::level_own_only:
    case PerfObstacle::level_hides_kernel:
      return capability_hint(failure.own, kMonitor, sysctl_command(level_for(failure)));
    case PerfObstacle::level_unknown:
      return capability_hint(failure.own, kMonitor, "sudo mount -t proc proc /proc, to see why");
    case PerfObstacle::seccomp_filter:
      return hint_for_filter(failure);
    case PerfObstacle::foreign_process:
      return hint_for_foreign(failure);
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
      return "refused by a seccomp filter";
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
  return {code_of(obstacle), fmt::format("{}: {}", subject, reason_of(failure)), hint_for(failure).command};
}

}  // namespace ddprof
