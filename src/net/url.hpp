#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

// "host", "host:port", "[::1]:port": what every address of a server comes down to.
struct HostAndPort {
  std::string host;  // without the brackets of an IPv6 address
  std::optional<std::uint16_t> port;

  // The message of an error is why not, without the text.
  static Result<HostAndPort> parse(std::string_view text);
};

// An http or https address, in the parts that a request needs. Made by parse() it holds nothing that could
// break out of a request line.
struct Url {
  bool is_tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 80;
  std::string target = "/";  // path and query

  // No user names and passwords: they would end up in messages.
  static Result<Url> parse(std::string_view text);
  // Where a redirection (the Location header) leads from here.
  [[nodiscard]] Result<Url> follow(std::string_view location) const;

  [[nodiscard]] std::string authority() const;  // as the Host header has it
  [[nodiscard]] std::string text() const;
};

}  // namespace ddprof
