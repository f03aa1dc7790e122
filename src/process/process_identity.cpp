#include "process/process_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "process/confinement.hpp"
#include "process/service_name.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostVariableBytes = std::size_t{1} << 20U;
constexpr std::size_t kLongestHeader = 500;

std::string first_said(std::initializer_list<std::string_view> texts) {
  for (std::string_view text : texts)
    if (std::string shown = fit_to_be_shown(text); !shown.empty()) return shown;
  return {};
}

// It becomes a header as it is, or not at all.
std::string fit_for_header(std::string_view text) {
  const bool is_fit = text.size() <= kLongestHeader &&
                      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c != '\x7f'; });
  return std::string(is_fit ? text : "");
}

}  // namespace

ProcessIdentity said_identity(std::string_view environment, const ProcessContext& context,
                              std::string_view executable) {
  const auto variable = [&](std::string_view name) { return variable_in_environment(environment, name); };
  const std::string_view listed = variable("OTEL_RESOURCE_ATTRIBUTES");
  ProcessIdentity identity;
  const std::string configured = service_in_environment(environment);
  identity.program = first_said({configured, executable});
  identity.service = first_said({configured, context.text("service.name"), executable});
  identity.environment = first_said(
      {variable("DD_ENV"), resource_attribute(listed, "deployment.environment.name"),
       resource_attribute(listed, "deployment.environment"), context.text("deployment.environment.name")});
  identity.version = first_said({variable("DD_VERSION"), resource_attribute(listed, "service.version"),
                                 context.text("service.version")});
  identity.external_environment = fit_for_header(variable("DD_EXTERNAL_ENV"));
  identity.instance_id = fit_to_be_shown(context.text("service.instance.id"));
  const auto tags = context.attributes.find("datadog.process_tags");
  if (tags != context.attributes.end()) identity.process_tags = tags->second;
  return identity;
}

std::optional<ProcessIdentity> read_process_identity(Pid pid, ForeignMemory& memory) {
  const auto environment = memory.read_file(pid, "environ", kMostVariableBytes);
  if (!environment) return std::nullopt;
  ProcessIdentity identity = said_identity(
      *environment, read_process_context(pid, memory).value_or(ProcessContext()), read_executable_name(pid));
  if (const auto confinement = read_confinement(pid)) identity.container_id = confinement->container_id;
  identity.entity_id = read_entity_id(pid);
  return identity;
}

}  // namespace ddprof
