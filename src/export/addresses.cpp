#include "export/addresses.hpp"

#include <sys/un.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "net/url.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kUnixScheme = "unix://", kUdpScheme = "udp://", kTlsScheme = "https://";
constexpr std::string_view kIntakeHost = "intake.profile.";

// "unix:///path" or "/path"; none: an address of another kind.
std::optional<std::string_view> socket_path(std::string_view text) {
  if (text.starts_with(kUnixScheme)) return text.substr(kUnixScheme.size());
  return text.starts_with('/') ? std::optional(text) : std::nullopt;
}

Result<std::string> parse_server_url(std::string_view text) {
  TRY(Url::parse(text));
  while (text.ends_with('/')) text.remove_suffix(1);
  return std::string(text);
}

bool is_domain(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  return text.find('.') != std::string_view::npos && std::all_of(text.begin(), text.end(), is_part);
}

Error not_a_statsd_address(std::string_view text, std::string_view why) {
  constexpr std::size_t kMostShown = 253;
  // Bytes that no address has do not belong on a terminal either.
  std::string shown;
  for (const char each : text.substr(0, kMostShown)) shown += each >= ' ' && each <= '~' ? each : '?';
  return with_hint(make_error(ErrorCode::invalid_argument, "statsd address '{}': {}", shown, why),
                   "unix:///path, /path, udp://host:port or host:port");
}

Result<StatsdAddress> parse_statsd_path(std::string_view text, std::string_view path) {
  if (!path.starts_with('/')) return not_a_statsd_address(text, "the path must begin with '/'");
  if (path.find('\0') != std::string_view::npos) return not_a_statsd_address(text, "not a path");
  if (path.size() >= sizeof(sockaddr_un::sun_path))
    return not_a_statsd_address(text, "longer than a socket's path may be");
  return StatsdAddress{.path = std::string(path)};
}

}  // namespace

Result<AgentAddress> AgentAddress::parse(std::string url, const std::string& host, std::int64_t port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  if (url.empty()) url = fmt::format("http://{}:{}", is_ipv6 ? fmt::format("[{}]", host) : host, port);
  // Requests need a host all the same; any does.
  if (const auto path = socket_path(url))
    return AgentAddress{.url = "http://localhost", .socket = std::string(*path)};
  if (url.find("://") == std::string::npos) url.insert(0, "http://");
  return AgentAddress{.url = TRY(parse_server_url(url)), .socket = {}};
}

Result<AgentAddress> intake_address(const std::string& url, const std::string& site) {
  if (url.starts_with(kTlsScheme)) return AgentAddress{.url = TRY(parse_server_url(url)), .socket = {}};
  if (url.find("://") != std::string::npos)
    return make_error(ErrorCode::invalid_argument,
                      "the intake is reached over https://, which keeps the API key to itself");
  std::string_view domain = url.empty() ? site : url;
  if (domain.starts_with(kIntakeHost)) domain.remove_prefix(kIntakeHost.size());
  if (!is_domain(domain))
    return make_error(ErrorCode::invalid_argument, "{}: not a site of Datadog", domain.substr(0, 100));
  return AgentAddress{.url = fmt::format("{}{}{}", kTlsScheme, kIntakeHost, domain), .socket = {}};
}

Result<std::string> parse_base_url(std::string_view text) {
  std::string url = TRY(parse_server_url(text));
  if (text.find_first_of("?#") == std::string_view::npos) return url;
  return make_error(ErrorCode::invalid_argument,
                    "read URL {}: a path is added to it, so it cannot have a query", without_query(text));
}

std::string without_query(std::string_view url) {
  return std::string(url.substr(0, url.find_first_of("?#")));
}

Result<StatsdAddress> StatsdAddress::parse(std::string_view text) {
  if (const auto path = socket_path(text)) return parse_statsd_path(text, *path);
  const bool has_scheme = text.starts_with(kUdpScheme);
  auto place = HostAndPort::parse(has_scheme ? text.substr(kUdpScheme.size()) : text);
  if (!place) return not_a_statsd_address(text, place.error().message);
  // Without a scheme a lone word is more likely a mistyped path than a host.
  if (!place->port && !has_scheme) return not_a_statsd_address(text, "neither a path nor host:port");
  return StatsdAddress{.host = std::move(place->host), .port = place->port.value_or(kUsualPort)};
}

std::string StatsdAddress::text() const {
  if (is_unix()) return fmt::format("unix://{}", path);
  const bool has_colon = host.find(':') != std::string::npos;
  return has_colon ? fmt::format("udp://[{}]:{}", host, port) : fmt::format("udp://{}:{}", host, port);
}

}  // namespace ddprof
