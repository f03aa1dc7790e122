#include "collect/perf/perf_checks.hpp"

#include <array>
#include <filesystem>
#include <sstream>

#include "base/read_file.hpp"
#include "collect/perf/perf_event.hpp"
#include "symbol/kernel_symbols.hpp"

namespace ddprof {

namespace {

using Capabilities = std::array<int, 1>;

struct KernelVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};

KernelVersion parse_release(const std::string& release) {
  KernelVersion version;
  char dot = 0;
  std::istringstream(release) >> version.major >> dot >> version.minor;
  return version;
}

// kallsyms_show_value() of the kernel: at 0 those who may profile the kernel by the sysctl, at 0 and 1
// those with CAP_SYSLOG, at 2 no one.
Hint hint_for_hidden_names(std::int64_t restriction, const OwnPrivileges& privileges) {
  static constexpr Capabilities kSyslog = {CAP_SYSLOG};
  if (privileges.has(CAP_SYSLOG)) return {.command = "sudo sysctl kernel.kptr_restrict=1"};
  std::string sysctl = "sudo sysctl";
  if (restriction > 0) sysctl += " kernel.kptr_restrict=0";
  if (privileges.paranoid.value_or(2) > 1) sysctl += " kernel.perf_event_paranoid=1";
  if (restriction < 2) return capability_hint(privileges, kSyslog, sysctl);
  return {.command = privileges.may_gain(CAP_SYSLOG) ? sysctl : sysctl + " on the host"};
}

}  // namespace

Finding check_kernel(const Machine& machine) {
  constexpr KernelVersion kOldest{4, 15};
  constexpr KernelVersion kWithPerfmon{5, 8};
  const std::optional<std::string> release = machine.text("/proc/sys/kernel/osrelease");
  Finding finding{.name = "kernel", .fact = "Linux " + release.value_or("of unknown version")};
  const KernelVersion version = parse_release(release.value_or(""));
  if (!release) {
    finding.state = CheckState::limited;
    finding.meaning = "/proc/sys cannot be read, so that ddprof cannot tell why something is refused";
    finding.hint.command = "sudo mount -t proc proc /proc";
  } else if (version < kOldest) {
    finding.state = CheckState::missing;
    finding.meaning = "older than 4.15, the oldest that ddprof supports";
    finding.hint.command = "a newer kernel";
  } else if (version < kWithPerfmon) {
    finding.state = CheckState::limited;
    finding.meaning = "older than 5.8: there is no CAP_PERFMON, and CAP_SYS_ADMIN or root stand for it";
    finding.hint = {"run ddprof as root", "--cap-add SYS_ADMIN",
                    "securityContext.capabilities.add: [SYS_ADMIN]"};
  } else {
    finding.meaning = "has what ddprof uses";
  }
  return finding;
}

Finding check_clock(const Machine& machine) {
  const std::string source =
      machine.text("/sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("unknown");
  Finding finding{.name = "clock", .fact = "clock source " + source};
  if (source == "hpet" || source == "acpi_pm" || source == "jiffies") {
    finding.state = CheckState::limited;
    finding.meaning = "reading the time is slow here, which makes each sample dearer";
    finding.hint.command =
        "see why with dmesg | grep -i clocksource; where the hardware is sound, boot with tsc=reliable";
  } else {
    finding.meaning = "samples of all CPUs are put in order by time";
  }
  return finding;
}

Finding check_sample_rate(const Machine& machine) {
  constexpr std::int64_t kComfortable = 1000;
  const auto rate = machine.number("/proc/sys/kernel/perf_event_max_sample_rate");
  Finding finding{.name = "sample-rate"};
  if (!rate) {
    finding.fact = "kernel.perf_event_max_sample_rate cannot be read";
    finding.meaning = "the kernel may throttle high rates; a summary says when it does";
    return finding;
  }
  finding.fact = fmt::format("kernel.perf_event_max_sample_rate is {}", *rate);
  finding.meaning = fmt::format("more than {} samples per second and CPU are throttled", *rate);
  if (*rate >= kComfortable) return finding;
  finding.state = CheckState::limited;
  finding.hint.command = "sudo sysctl kernel.perf_event_max_sample_rate=100000";
  return finding;
}

Finding check_kernel_names(const Machine& machine, const OwnPrivileges& privileges) {
  const auto restriction = machine.number("/proc/sys/kernel/kptr_restrict");
  Finding finding{.name = "kernel-names",
                  .fact = restriction ? fmt::format("kernel.kptr_restrict is {}", *restriction)
                                      : "kernel.kptr_restrict cannot be read"};
  const auto kallsyms = read_file(machine.path("/proc/kallsyms"));
  if (kallsyms && !KernelSymbols::parse(*kallsyms).empty()) {
    finding.meaning = "functions of the kernel have names";
    return finding;
  }
  finding.state = CheckState::missing;
  finding.fact += ", and /proc/kallsyms hides its addresses";
  finding.meaning = "frames of the kernel stay [kernel]+0x…";
  finding.hint = hint_for_hidden_names(restriction.value_or(0), privileges);
  return finding;
}

Finding check_tracefs(const Machine& machine) {
  const std::array<std::filesystem::path, 2> roots = {machine.path("/sys/kernel/tracing"),
                                                      machine.path("/sys/kernel/debug/tracing")};
  Finding finding{.name = "tracefs", .fact = "tracefs can be read"};
  const auto found = find_tracepoint_id("sched", "sched_switch", roots);
  if (found) {
    finding.meaning = "tracepoints can be events (-e sched:sched_switch)";
    return finding;
  }
  finding.state = CheckState::missing;
  const std::string& message = found.error().message;
  finding.fact = message.substr(message.rfind(": ") + 2);
  finding.meaning = "tracepoints cannot be events; nothing else needs it";
  finding.hint = {found.error().hint, "--volume /sys/kernel/tracing:/sys/kernel/tracing:ro",
                  "a hostPath volume of /sys/kernel/tracing"};
  const std::string systems = machine.text("/proc/filesystems").value_or("tracefs");
  if (systems.find("tracefs") == std::string::npos)
    finding.hint = {.command = "a kernel with CONFIG_FTRACE=y"};
  return finding;
}

Finding check_btf(const Machine& machine) {
  Finding finding{.name = "btf"};
  const bool exists = machine.exists("/sys/kernel/btf/vmlinux");
  finding.state = exists ? CheckState::ok : CheckState::missing;
  finding.fact = exists ? "/sys/kernel/btf/vmlinux exists" : "no /sys/kernel/btf/vmlinux";
  finding.meaning = "for a later BPF engine, which fits its programs to the kernel by it";
  if (!exists) finding.hint.command = "a kernel with CONFIG_DEBUG_INFO_BTF=y";
  return finding;
}

Finding check_bpf(const Machine& machine, const OwnPrivileges& privileges,
                  const std::optional<Error>& refusal) {
  static constexpr std::array<int, 2> kBpf = {CAP_BPF, CAP_PERFMON};
  const auto level = machine.number("/proc/sys/kernel/unprivileged_bpf_disabled");
  Finding finding{.name = "bpf",
                  .fact = level ? fmt::format("kernel.unprivileged_bpf_disabled is {}", *level)
                                : "no kernel.unprivileged_bpf_disabled"};
  finding.meaning = "samples have the trace, span and endpoint of threads that publish them";
  if (!refusal) return finding;
  finding.state = CheckState::missing;
  finding.fact += ", " + refusal->message;
  finding.meaning = "samples have no trace, span or endpoint, even of threads that publish them";
  if (refusal->code == ErrorCode::permission_denied) finding.hint = capability_hint(privileges, kBpf);
  return finding;
}

}  // namespace ddprof
