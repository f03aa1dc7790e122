#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

// The addresses that options and variables name, each a few rules on top of Url and HostAndPort
// (net/url.hpp).
namespace ddprof {

// Where the Datadog agent listens.
struct AgentAddress {
  std::string url;     // "http://localhost:8126", perhaps with a path, without a slash at its end
  std::string socket;  // path of a Unix socket; empty: none, the URL says where

  // `url` as the option takes it: host:port, http(s)://…, unix:///path or /path; empty: host and port.
  static Result<AgentAddress> parse(std::string url, const std::string& host, std::int64_t port);
  [[nodiscard]] std::string text() const { return socket.empty() ? url : "unix://" + socket; }
};

inline constexpr std::string_view kUsualSite = "datadoghq.com";

// Where profiles go without an agent: the intake of a site, "datadoghq.eu". `url` is used in its place when
// it is not empty; one without a scheme is a site, as in the original. Never without TLS: a key travels with
// them.
Result<AgentAddress> intake_address(const std::string& url, const std::string& site);

// The address of a server, to which a path is added: http(s)://host:port, perhaps with a path, without a
// slash at its end. A query would end up in the middle and is refused.
Result<std::string> parse_base_url(std::string_view text);

// An address as messages and folders may name it: what follows the question mark can be a secret.
std::string without_query(std::string_view url);

// Where a DogStatsD server listens: a Unix datagram socket, or a UDP port.
struct StatsdAddress {
  static constexpr std::uint16_t kUsualPort = 8125;

  std::string path;  // of the Unix socket; empty: UDP
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = kUsualPort;

  // unix:///path, /path, udp://host[:port], host:port
  static Result<StatsdAddress> parse(std::string_view text);

  [[nodiscard]] bool is_unix() const { return !path.empty(); }
  [[nodiscard]] std::string text() const;  // for messages; parse() reads it back
};

}  // namespace ddprof
