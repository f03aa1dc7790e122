#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace ddprof {

// Where the Datadog agent listens.
struct AgentAddress {
  std::string url;     // "http://localhost:8126", perhaps with a path, without a slash at its end
  std::string socket;  // path of a Unix socket; empty: none, the URL says where

  // `url` as the option takes it: host:port, http(s)://…, unix:///path or /path; empty: host and port.
  static Result<AgentAddress> parse(std::string url, const std::string& host, std::int64_t port);
  [[nodiscard]] std::string text() const { return socket.empty() ? url : "unix://" + socket; }
};

}  // namespace ddprof
