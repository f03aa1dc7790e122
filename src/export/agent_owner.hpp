#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace ddprof
