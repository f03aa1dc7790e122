#include "process/service_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/read_file.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kMaxEnvironmentBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxServiceBytes = 200;

// The part up to `end`, which is taken off together with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

}  // namespace

std::string_view variable_in_environment(std::string_view environment, std::string_view variable) {
  while (!environment.empty()) {
    const std::string_view entry = take_until(environment, '\0');
    if (entry.size() > variable.size() && entry.starts_with(variable) && entry[variable.size()] == '=')
      return entry.substr(variable.size() + 1);
  }
  return {};
}

std::string_view resource_attribute(std::string_view attributes, std::string_view name) {
  while (!attributes.empty()) {
    std::string_view attribute = take_until(attributes, ',');
    std::string_view key = take_until(attribute, '=');
    while (key.starts_with(' ')) key.remove_prefix(1);
    if (key == name) return attribute;
  }
  return {};
}

std::string fit_to_be_shown(std::string_view text) {
  std::string shown(text.substr(0, kMaxServiceBytes));
  // A character that was cut in the middle would make the whole text invalid.
  const auto is_continuation = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; };
  if (text.size() > kMaxServiceBytes && is_continuation(text[kMaxServiceBytes])) {
    while (!shown.empty() && is_continuation(shown.back())) shown.pop_back();
    if (!shown.empty()) shown.pop_back();
  }
  std::erase_if(shown, [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f; });
  return shown;
}

std::string service_in_environment(std::string_view environment) {
  for (const std::string_view value :
       {variable_in_environment(environment, "DD_SERVICE"),
        variable_in_environment(environment, "OTEL_SERVICE_NAME"),
        resource_attribute(variable_in_environment(environment, "OTEL_RESOURCE_ATTRIBUTES"),
                           "service.name")}) {
    if (std::string name = fit_to_be_shown(value); !name.empty()) return name;
  }
  return {};
}

std::string executable_in_link(std::string_view link) {
  constexpr std::string_view kDeletedEnd = " (deleted)";
  if (link.ends_with(kDeletedEnd)) link.remove_suffix(kDeletedEnd.size());
  return std::string(link.substr(link.rfind('/') + 1));  // npos + 1 is 0
}

std::string read_executable_name(Pid pid) {
  std::error_code ignored;
  return executable_in_link(
      std::filesystem::read_symlink(fmt::format("/proc/{}/exe", to_int(pid)), ignored).string());
}

std::string read_variable(Pid pid, std::string_view name) {
  const auto environment = read_file(fmt::format("/proc/{}/environ", to_int(pid)), kMaxEnvironmentBytes);
  return std::string(environment ? variable_in_environment(*environment, name) : "");
}

std::shared_ptr<const ServiceName> read_service_name(Pid pid, std::shared_ptr<const ServiceName> inherited,
                                                     ForeignMemory& memory) {
  const auto environment = memory.read_file(pid, "environ", kMaxEnvironmentBytes);
  ServiceName service;
  if (environment) service.name = service_in_environment(*environment);
  service.is_configured = !service.name.empty();
  if (!environment && inherited && inherited->is_configured) return inherited;
  if (!service.is_configured) service.name = fit_to_be_shown(read_executable_name(pid));
  return std::make_shared<const ServiceName>(std::move(service));
}

}  // namespace ddprof
