#pragma once

#include <chrono>
#include <vector>

#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "debugfile/debuginfod_settings.hpp"

namespace ddprof {

inline constexpr std::chrono::milliseconds kDebuginfodPatience{2000};

// Where lines and inlined calls of stripped files can come from.
Finding check_debug_files(const Machine& machine);
Finding check_debuginfod(const std::optional<DebuginfodSettings>& settings,
                         std::chrono::milliseconds patience = kDebuginfodPatience);

// Where this process lives.
[[nodiscard]] bool is_in_container(const Machine& machine);
// The first one, which holds every process of the machine.
[[nodiscard]] bool is_in_first_pid_namespace(const Machine& machine);

Finding check_container(const Machine& machine);
Finding check_pid_namespace(const Machine& machine);
Finding check_cgroup(const Machine& machine);

// What an engine can do is no more than this place lets it see.
void limit_to_namespace(const Machine& machine, std::vector<Ability>& abilities);

}  // namespace ddprof
