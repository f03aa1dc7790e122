#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cli/options.hpp"

namespace ddprof {

// How this machine is asked for an agent that nobody named.
struct AgentProbe {
  std::function<bool(const std::string& path)> has_socket;
  std::function<bool(std::uint16_t port)> has_listener;  // at loopback
};

// Answers at once: loopback takes or refuses a connection within microseconds, and is not waited for longer
// than `patience` if it does neither.
AgentProbe agent_probe(std::chrono::milliseconds patience = std::chrono::milliseconds(20));

// Sets the URL to where an agent listens by default, if somebody is there. Not for `record`, whose profile
// is its file, nor when the user said where profiles go.
void find_agent(Options& options, const AgentProbe& probe);
// Whether that has set it.
[[nodiscard]] bool is_agent_found(const Options& options);

}  // namespace ddprof
