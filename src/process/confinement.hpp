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

// The directory of the control group in the text of /proc/PID/cgroup, as mounted below /sys/fs/cgroup; empty
// where it cannot be seen from here. That of the memory controller where there are several hierarchies.
std::string cgroup_directory_in(std::string_view text);

std::shared_ptr<const Confinement> read_confinement(Pid pid);
// How a Datadog agent is told where a process lives: "ci-<container id>", or else "in-<inode>" of its control
// group. Empty for a process outside of containers.
std::string read_entity_id(Pid pid);
std::optional<Pid> read_namespace_pid(Pid pid);

// The effective user in the text of /proc/PID/status; none without one.
std::optional<std::uint32_t> parse_effective_user(std::string_view status);
std::optional<std::uint32_t> read_effective_user(Pid pid);

}  // namespace ddprof
