#include "export/statsd_address.hpp"

#include <sys/un.h>

#include <charconv>
#include <cstddef>
#include <optional>

namespace ddprof {

namespace {

constexpr std::string_view kUnixScheme = "unix://";
constexpr std::string_view kUdpScheme = "udp://";
constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t kMaxHost = 253;  // RFC 1035

Error not_an_address(std::string_view text, std::string_view why) {
  // Bytes that no address has do not belong on a terminal either.
  std::string shown;
  for (const char each : text.substr(0, kMaxHost)) shown += each >= ' ' && each <= '~' ? each : '?';
  Error error = make_error(ErrorCode::invalid_argument, "statsd address '{}': {}", shown, why);
  return with_hint(std::move(error), "unix:///path, /path, udp://host:port or host:port");
}

bool is_host_character(char each) { return each > ' ' && each <= '~' && each != '/' && each != '@'; }

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (problem != std::errc() || end != digits.data() + digits.size() || port == 0) return std::nullopt;
  return port;
}

struct HostAndPort {
  std::string_view host;
  std::optional<std::string_view> port;
};

// "[::1]:8125" or "agent:8125"; the port may be absent. No value: brackets that make no sense.
std::optional<HostAndPort> split_authority(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return HostAndPort{host, std::nullopt};
    if (!rest.starts_with(':')) return std::nullopt;
    return HostAndPort{host, rest.substr(1)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return HostAndPort{text, std::nullopt};
  return HostAndPort{text.substr(0, colon), text.substr(colon + 1)};
}

Result<StatsdAddress> parse_path(std::string_view text, std::string_view path) {
  if (!path.starts_with('/')) return not_an_address(text, "the path must begin with '/'");
  if (path.find('\0') != std::string_view::npos) return not_an_address(text, "not a path");
  if (path.size() > kMaxPath) return not_an_address(text, "longer than a socket's path may be");
  return StatsdAddress{.path = std::string(path)};
}

Result<StatsdAddress> parse_authority(std::string_view text, std::string_view authority, bool needs_port) {
  const auto parts = split_authority(authority);
  if (!parts || parts->host.empty() || parts->host.size() > kMaxHost)
    return not_an_address(text, "no host in it");
  for (const char each : parts->host) {
    if (!is_host_character(each) || each == '[' || each == ']') return not_an_address(text, "not a host");
  }
  StatsdAddress address{.host = std::string(parts->host)};
  if (!parts->port) {
    // Without a scheme a lone word is more likely a mistyped path than a host.
    if (needs_port) return not_an_address(text, "neither a path nor host:port");
    return address;
  }
  const auto port = parse_port(*parts->port);
  if (!port) return not_an_address(text, "the port must be 1 to 65535");
  address.port = *port;
  return address;
}

}  // namespace

Result<StatsdAddress> StatsdAddress::parse(std::string_view text) {
  if (text.starts_with(kUnixScheme)) return parse_path(text, text.substr(kUnixScheme.size()));
  if (text.starts_with('/')) return parse_path(text, text);
  if (text.starts_with(kUdpScheme)) return parse_authority(text, text.substr(kUdpScheme.size()), false);
  return parse_authority(text, text, true);
}

std::string StatsdAddress::text() const {
  if (is_unix()) return fmt::format("unix://{}", path);
  const bool has_colon = host.find(':') != std::string::npos;
  return has_colon ? fmt::format("udp://[{}]:{}", host, port) : fmt::format("udp://{}:{}", host, port);
}

}  // namespace ddprof
