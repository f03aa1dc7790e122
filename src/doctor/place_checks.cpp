#include "doctor/place_checks.hpp"

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "net/http_client.hpp"

namespace ddprof {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What is behind the address does not matter: any answer is one.
Result<void> ask_server(const std::string& url, milliseconds patience) {
  const HttpOptions options{.connect_timeout = patience,
                            .first_byte_timeout = patience,
                            .progress_timeout = patience,
                            .total_timeout = patience,
                            .max_bytes = 0};
  auto answer = http_get(url, options, [](std::span<const std::byte>) -> Result<void> { return {}; });
  const bool has_answered = answer || answer.error().code == ErrorCode::exhausted;  // of more than 0 bytes
  return has_answered ? Result<void>() : std::move(answer).error();
}

}  // namespace

Finding check_debug_files(const Machine& machine) {
  constexpr std::string_view kFolder = "/usr/lib/debug/.build-id";
  Finding finding{.name = "debug-files"};
  if (machine.exists(kFolder)) {
    finding.fact = fmt::format("{} exists", kFolder);
    finding.meaning = "installed debug files give lines and inlined calls to stripped programs and libraries";
    return finding;
  }
  finding.state = CheckState::missing;
  finding.fact = fmt::format("no {}", kFolder);
  finding.meaning = "stripped files have the names left in them, without lines and inlined calls";
  finding.hint = {"install debug packages (Debian: sudo apt install libc6-dbg, and *-dbgsym)",
                  "--volume /usr/lib/debug:/usr/lib/debug:ro", "a hostPath volume of /usr/lib/debug"};
  return finding;
}

Finding check_debuginfod(const std::optional<DebuginfodSettings>& settings, milliseconds patience) {
  Finding finding{.name = "debuginfod"};
  if (!settings) {
    finding.state = CheckState::missing;
    finding.fact = "DEBUGINFOD_URLS names no server";
    finding.meaning = "debug files that are not installed are not fetched";
    finding.hint = {"export DEBUGINFOD_URLS=https://debuginfod.debian.net (or your distribution's)",
                    "--env DEBUGINFOD_URLS=…", "env DEBUGINFOD_URLS"};
    return finding;
  }
  const auto deadline = steady_clock::now() + patience;
  std::size_t answered = 0;
  std::string problem;
  for (const std::string& url : settings->urls) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (auto asked = ask_server(url, std::max(left, milliseconds(1))); asked)
      ++answered;
    else
      problem = asked.error().message;
  }
  finding.fact = fmt::format("{} of {} servers in DEBUGINFOD_URLS answer", answered, settings->urls.size());
  finding.meaning = fmt::format("missing debug files are fetched into {}", settings->cache_folder);
  if (answered == settings->urls.size()) return finding;
  finding.state = answered == 0 ? CheckState::missing : CheckState::limited;
  finding.meaning = problem;
  finding.hint.command = "name servers that this machine can reach, or unset DEBUGINFOD_URLS";
  return finding;
}

namespace {

// PROC_PID_INIT_INO, the same on every kernel.
constexpr std::string_view kFirstPidNamespace = "pid:[4026531836]";
constexpr std::int64_t kMebibyte = std::int64_t{1} << 20U;

// By what, in words; nothing outside of containers.
std::optional<std::string> container_sign(const Machine& machine) {
  for (const std::string_view file : {"/.dockerenv", "/run/.containerenv"}) {
    if (machine.exists(file)) return fmt::format("{} exists", file);
  }
  const std::string groups = machine.text("/proc/self/cgroup").value_or("");
  for (const std::string_view word : {"kubepods", "docker", "containerd", "libpod", "lxc"}) {
    if (groups.find(word) != std::string::npos) return fmt::format("a control group of {}", word);
  }
  return std::nullopt;
}

struct ControlGroup {
  int version = 0;         // 0: none
  std::string limit_file;  // of memory, below /sys/fs/cgroup
};

// Version 1 when it has the memory controller, as on hybrid systems.
ControlGroup memory_group(std::string_view text) {
  ControlGroup group;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers == "memory") return {1, "/memory" + path + "/memory.limit_in_bytes"};
    if (controllers.empty()) group = {2, path + "/memory.max"};
  }
  return group;
}

}  // namespace

bool is_in_container(const Machine& machine) { return container_sign(machine).has_value(); }

bool is_in_first_pid_namespace(const Machine& machine) {
  return machine.link("/proc/self/ns/pid").value_or(std::string(kFirstPidNamespace)) == kFirstPidNamespace;
}

Finding check_container(const Machine& machine) {
  const std::optional<std::string> sign = container_sign(machine);
  if (!sign)
    return {.name = "container", .fact = "no container", .meaning = "settings are this machine's own"};
  return {.name = "container",
          .fact = fmt::format("a container ({})", *sign),
          .meaning = "sysctls are the host's, capabilities and seccomp the container's"};
}

Finding check_pid_namespace(const Machine& machine) {
  Finding finding{.name = "pid-namespace",
                  .fact = "the machine's own",
                  .meaning = "every process of this machine is in sight"};
  if (is_in_first_pid_namespace(machine)) return finding;
  finding.state = CheckState::limited;
  finding.fact = "not the machine's own";
  finding.meaning = "-p finds, and -g unwinds, only processes of this PID namespace";
  finding.hint = {"run ddprof in the namespace of the host", "--pid host", "hostPID: true"};
  return finding;
}

Finding check_cgroup(const Machine& machine) {
  constexpr std::int64_t kComfortable = 512 * kMebibyte;
  const ControlGroup group = memory_group(machine.text("/proc/self/cgroup").value_or(""));
  Finding finding{.name = "cgroup",
                  .fact = group.version == 0 ? "no control group"
                                             : fmt::format("control groups of version {}", group.version)};
  const auto limit = machine.number("/sys/fs/cgroup" + group.limit_file);
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;  // version 1 has a huge number for none
  if (!limit || *limit >= kNoLimit) {
    finding.meaning = limit ? "memory is not limited" : "no limit to memory is known";
    return finding;
  }
  finding.meaning = fmt::format("profiler and program share {} MiB of memory", *limit / kMebibyte);
  if (*limit >= kComfortable) return finding;
  finding.state = CheckState::limited;
  finding.hint = {"raise the group's memory limit", "--memory 1g", "resources.limits.memory: 1Gi"};
  return finding;
}

void limit_to_namespace(const Machine& machine, std::vector<Ability>& abilities) {
  if (is_in_first_pid_namespace(machine)) return;
  for (Ability& ability : abilities) {
    if (ability.name != kWholeHostAbility || ability.state == CheckState::missing) continue;
    ability.state = CheckState::limited;
    ability.meaning = "only processes of this PID namespace have stacks";
    ability.hint = check_pid_namespace(machine).hint;
  }
}

}  // namespace ddprof
