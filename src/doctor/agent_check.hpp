#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "doctor/finding.hpp"

namespace ddprof {

// Where the Datadog agent listens.
struct AgentAddress {
  std::string url;     // "http://localhost:8126"; empty with a socket
  std::string socket;  // path of a unix socket

  // `url` as the option takes it: host:port, http(s)://…, unix:///path or /path; empty: host and port.
  static Result<AgentAddress> parse(std::string url, const std::string& host, std::int64_t port);
  [[nodiscard]] std::string text() const { return socket.empty() ? url : "unix://" + socket; }
};

inline constexpr std::chrono::milliseconds kAgentPatience{1000};

// Whether it answers, and takes profiles.
Finding check_agent(const Result<AgentAddress>& address, std::chrono::milliseconds patience = kAgentPatience);

}  // namespace ddprof
