#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cli/options.hpp"

namespace ddprof {

// How this machine is asked for an agent that was not named.
struct AgentProbe {
  std::function<bool(const std::string& path)> has_socket;
  std::function<bool(std::uint16_t port)> has_listener;  // at loopback
  // Whose they are, if it is a user who may not see what we see (export/agent_owner.hpp); null: not asked.
  std::function<std::optional<uid_t>(const std::string& path)> stranger_at_socket = {};
  std::function<std::optional<uid_t>(std::uint16_t port)> stranger_at_port = {};
};

// Answers at once: loopback takes or refuses a connection within microseconds, and is not waited for longer
// than `patience` if it does neither.
AgentProbe agent_probe(std::chrono::milliseconds patience = std::chrono::milliseconds(20));

// Sets the URL to where an agent listens by default, if something listens there. Not for `record`, whose
// profile is its file, nor when the user said where profiles go. A stranger's listener is not used, and a
// warning says how to name it.
void find_agent(Options& options, const AgentProbe& probe);
// Whether that has set it.
[[nodiscard]] bool is_agent_found(const Options& options);
// For each request to an agent that was found: why it is not sent, as long as a stranger listens there. Null
// where anybody may have it.
std::function<std::optional<Error>()> found_agent_guard(const Options& options);

}  // namespace ddprof
