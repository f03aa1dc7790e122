#include "process/process_identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/read_file.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMostVariableBytes = std::size_t{1} << 20U;
constexpr std::size_t kLongestHeader = 500;
constexpr std::size_t kLongestText = 200;

// The part up to `end`, which is taken off together with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::string_view variable_in(std::string_view environment, std::string_view variable) {
  while (!environment.empty()) {
    const std::string_view entry = take_until(environment, '\0');
    if (entry.size() > variable.size() && entry.starts_with(variable) && entry[variable.size()] == '=')
      return entry.substr(variable.size() + 1);
  }
  return {};
}

// Among "service.name=shop,service.version=2", OpenTelemetry's list of resource attributes.
std::string_view attribute_in(std::string_view attributes, std::string_view name) {
  while (!attributes.empty()) {
    std::string_view attribute = take_until(attributes, ',');
    std::string_view key = take_until(attribute, '=');
    while (key.starts_with(' ')) key.remove_prefix(1);
    if (key == name) return attribute;
  }
  return {};
}

}  // namespace

std::string fit_to_be_shown(std::string_view text) {
  std::string shown(text.substr(0, kLongestText));
  // A character that was cut in the middle would make the whole text invalid.
  const auto is_continuation = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; };
  if (text.size() > kLongestText && is_continuation(text[kLongestText])) {
    while (!shown.empty() && is_continuation(shown.back())) shown.pop_back();
    if (!shown.empty()) shown.pop_back();
  }
  std::erase_if(shown, [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f; });
  return shown;
}

namespace {

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

ProcessIdentity identity_in_environment(std::string_view environment, std::string_view executable) {
  const auto variable = [&](std::string_view name) { return variable_in(environment, name); };
  const std::string_view listed = variable("OTEL_RESOURCE_ATTRIBUTES");
  ProcessIdentity identity;
  identity.program = first_said(
      {variable("DD_SERVICE"), variable("OTEL_SERVICE_NAME"), attribute_in(listed, "service.name")});
  identity.is_configured = !identity.program.empty();
  if (!identity.is_configured) identity.program = fit_to_be_shown(executable);
  identity.service = identity.program;
  identity.environment = first_said({variable("DD_ENV"), attribute_in(listed, "deployment.environment.name"),
                                     attribute_in(listed, "deployment.environment")});
  identity.version = first_said({variable("DD_VERSION"), attribute_in(listed, "service.version")});
  identity.external_environment = fit_for_header(variable("DD_EXTERNAL_ENV"));
  return identity;
}

ProcessIdentity with_published(ProcessIdentity identity, const ProcessContext& context) {
  const std::string service = fit_to_be_shown(context.text("service.name"));
  if (!identity.is_configured && !service.empty()) identity.service = service;
  identity.environment = first_said({identity.environment, context.text("deployment.environment.name")});
  identity.version = first_said({identity.version, context.text("service.version")});
  identity.instance_id = fit_to_be_shown(context.text("service.instance.id"));
  const auto tags = context.attributes.find("datadog.process_tags");
  if (tags != context.attributes.end()) identity.process_tags = tags->second;
  return identity;
}

ProcessIdentity read_process_identity(Pid pid, const Confinement& confinement, ForeignMemory& memory) {
  const auto environment = memory.read_file(pid, "environ", kMostVariableBytes);
  ProcessIdentity identity =
      identity_in_environment(environment ? *environment : std::string_view(), read_executable_name(pid));
  identity.is_read = environment.ok();
  identity.container_id = confinement.container_id;
  identity.entity_id =
      confinement.container_id.empty() ? read_entity_id(pid) : "ci-" + confinement.container_id;
  return identity;
}

std::string executable_in_link(std::string_view link) {
  constexpr std::string_view kDeletedEnd = " (deleted)";
  if (link.ends_with(kDeletedEnd)) link.remove_suffix(kDeletedEnd.size());
  return std::string(link.substr(link.rfind('/') + 1));  // npos + 1 is 0
}

std::string read_executable_name(Pid pid) { return executable_in_link(read_proc_link(pid, "exe")); }

std::string read_variable(Pid pid, std::string_view name) {
  const auto environment = read_file(proc_path(pid, "environ"), kMostVariableBytes);
  return std::string(environment ? variable_in(*environment, name) : "");
}

std::string read_process_name(Pid pid) { return read_thread_name(pid, Tid{to_int(pid)}).value_or(""); }

std::string read_descriptor_link(Pid pid, int descriptor) {
  return read_proc_link(pid, fmt::format("fd/{}", descriptor));
}

}  // namespace ddprof
