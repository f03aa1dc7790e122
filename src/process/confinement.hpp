#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"

namespace ddprof {

// Where a process lives: what an orchestrator calls it by. Shared by processes that are forked inside.
struct Confinement {
  std::string container_id;  // empty: in none that we know the names of
  std::string cgroup;        // path of the innermost control group; empty: the root one, or unknown
};

// From the text of /proc/PID/cgroup.
Confinement parse_cgroup(std::string_view text);
// The id that a path of control groups ends in: 64 hexadecimal digits, a UUID, or what Garden and ECS use.
// Empty without one.
std::string_view container_id_in(std::string_view cgroup_path);
// The innermost of the process ids in the text of /proc/PID/status, when it is in a PID namespace below ours.
std::optional<Pid> parse_namespace_pid(std::string_view status);

std::shared_ptr<const Confinement> read_confinement(Pid pid);
std::optional<Pid> read_namespace_pid(Pid pid);

// The effective user in the text of /proc/PID/status; none without one.
std::optional<std::uint32_t> parse_effective_user(std::string_view status);
std::optional<std::uint32_t> read_effective_user(Pid pid);

}  // namespace ddprof
