#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

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
