#include "doctor/doctor.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <optional>

#include "collect/bpf/thread_context_reader.hpp"
#include "collect/perf/own_privileges.hpp"
#include "doctor/agent_check.hpp"
#include "doctor/debug_checks.hpp"
#include "doctor/kernel_checks.hpp"
#include "doctor/machine.hpp"
#include "doctor/perf_checks.hpp"
#include "doctor/perf_probe.hpp"
#include "doctor/place_checks.hpp"
#include "doctor/privilege_checks.hpp"
#include "export/agent_owner.hpp"

namespace ddprof {

namespace {

std::uint64_t memlock_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : 0;
}

// Why nobody can read what threads publish; none: it works.
std::optional<Error> context_refusal(std::size_t cpus) {
  auto opened = ThreadContextReader::open(std::max<std::size_t>(cpus, 1), std::chrono::seconds(1));
  return opened ? std::nullopt : std::optional(std::move(opened).error());
}

Finding check_agent_of(const DoctorOptions& options) {
  const auto address = AgentAddress::parse(options.url, options.host, options.port);
  if (options.is_named || !has_privilege()) return check_agent(address);
  return check_found_agent(address, stranger_at_port(static_cast<std::uint16_t>(options.port)));
}

}  // namespace

Diagnosis examine(const DoctorOptions& options) {
  const Machine machine;
  const OwnPrivileges privileges = own_privileges();
  const PerfProbe probe = probe_perf();
  Diagnosis diagnosis;
  diagnosis.findings = {
      // Whether it works.
      check_kernel(machine),
      check_perf_events(probe),
      check_kernel_frames(probe),
      check_all_processes(probe),
      check_hardware(machine, probe),
      check_locked_memory(machine, probe, memlock_limit()),
      // Who decides.
      check_paranoid(privileges, probe),
      check_capabilities(privileges),
      check_seccomp(privileges, probe),
      check_ptrace(machine, privileges),
      check_container(machine),
      check_pid_namespace(machine),
      check_cgroup(machine),
      // What makes profiles better.
      check_kernel_names(machine, privileges),
      check_debug_files(machine),
      check_debuginfod(debuginfod_settings()),
      check_sample_rate(machine),
      check_clock(machine),
      check_tracefs(machine),
      check_btf(machine),
      check_bpf(machine, privileges, context_refusal(probe.cpus)),
      // Where profiles could go.
      check_agent_of(options),
  };
  diagnosis.abilities = judge(machine, privileges, probe);
  diagnosis.is_in_container = is_in_container(machine);
  diagnosis.can_profile = probe.can_profile();
  return diagnosis;
}

}  // namespace ddprof
