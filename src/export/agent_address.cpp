#include "export/agent_address.hpp"

#include "net/url.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kSocketScheme = "unix://";

AgentAddress at_socket(std::string_view path) {
  // Requests need a host all the same; any does.
  return {.url = "http://localhost", .socket = std::string(path)};
}

}  // namespace

Result<AgentAddress> AgentAddress::parse(std::string url, const std::string& host, std::int64_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  if (url.empty()) url = fmt::format("http://{}:{}", is_ipv6 ? fmt::format("[{}]", host) : host, port);
  if (url.starts_with(kSocketScheme)) return at_socket(url.substr(kSocketScheme.size()));
  if (url.starts_with('/')) return at_socket(url);
  if (url.find("://") == std::string::npos) url.insert(0, "http://");
  TRY(Url::parse(url));
  while (url.ends_with('/')) url.pop_back();
  return AgentAddress{.url = url, .socket = {}};
}

}  // namespace ddprof
