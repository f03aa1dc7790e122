#include "doctor/doctor.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "collect/engines/engine_table.hpp"
#include "collect/machine.hpp"
#include "doctor/agent_check.hpp"
#include "doctor/java_check.hpp"
#include "doctor/place_checks.hpp"
#include "export/local_agent.hpp"

namespace ddprof {

namespace {

Finding check_agent_of(const DoctorOptions& options) {
  const auto address = AgentAddress::parse(options.url, options.host, options.port);
  if (options.is_named || !has_privilege()) return check_agent(address);
  return check_found_agent(address, stranger_at_port(static_cast<std::uint16_t>(options.port)));
}

}  // namespace

Diagnosis examine(const DoctorOptions& options) {
  const Machine machine;
  EngineAccount account = engine_table().front().make()->examine();
  Diagnosis diagnosis;
  const auto add = [&](std::vector<Finding> findings) {
    std::move(findings.begin(), findings.end(), std::back_inserter(diagnosis.findings));
  };
  add(std::move(account.works));
  add(std::move(account.decides));
  add({check_container(machine), check_pid_namespace(machine), check_cgroup(machine)});
  add(std::move(account.names));
  add({check_debug_files(machine), check_debuginfod(debuginfod_settings())});
  add(std::move(account.improves));
  if (auto java = check_java(find_java_processes())) add({*std::move(java)});
  add({check_agent_of(options)});
  diagnosis.abilities = std::move(account.abilities);
  limit_to_namespace(machine, diagnosis.abilities);
  diagnosis.is_in_container = is_in_container(machine);
  diagnosis.can_profile = account.can_profile;
  return diagnosis;
}

}  // namespace ddprof
