#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/destination_options.hpp"

namespace ddprof {

// Any user can listen at the agent's port while no agent runs. Who can see other users' processes sends what
// it has seen only to a listener of root, of the agent's user or of its own, unless the user has named
// another.

// Root, or with capabilities.
[[nodiscard]] bool has_privilege();

// Whose listener it is, if it is none of these users'. Nothing: it is one of theirs, or nothing listens.
std::optional<uid_t> stranger_at_port(std::uint16_t port);  // of loopback
std::optional<uid_t> stranger_at_socket(const std::string& path);

// "http://localhost:8126: a process of user 61001 listens there, neither root's nor dd-agent's"
std::string stranger_text(const std::string& place, uid_t stranger);

// Owners of the sockets that listen at this port of loopback or of all addresses, by the text of
// /proc/net/tcp or /proc/net/tcp6.
std::vector<uid_t> listeners_in(std::string_view table, std::uint16_t port);

inline constexpr const char* kUsualAgentSocket = "/var/run/datadog/apm.socket";
inline constexpr std::uint16_t kUsualAgentPort = 8126;

// How this machine is asked for an agent that was not named.
struct AgentProbe {
  std::function<bool(const std::string& path)> has_socket;
  std::function<bool(std::uint16_t port)> has_listener;  // at loopback
  // Whose they are, if it is a user who may not see what we see; null: not asked.
  std::function<std::optional<uid_t>(const std::string& path)> stranger_at_socket = {};
  std::function<std::optional<uid_t>(std::uint16_t port)> stranger_at_port = {};
};

// Answers at once: loopback takes or refuses a connection within microseconds, and is not waited for longer
// than `patience` if it does neither.
AgentProbe agent_probe(std::chrono::milliseconds patience = std::chrono::milliseconds(20));

// Whether its address is that of an agent that was found here, and that the user has not named.
[[nodiscard]] bool is_agent_found(const DestinationOptions& options);

}  // namespace ddprof
