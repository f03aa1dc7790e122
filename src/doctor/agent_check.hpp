#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

#include "base/result.hpp"
#include "collect/finding.hpp"
#include "export/addresses.hpp"

namespace ddprof {

inline constexpr std::chrono::milliseconds kAgentPatience{1000};

// Whether it answers, and takes profiles.
Finding check_agent(const Result<AgentAddress>& address, std::chrono::milliseconds patience = kAgentPatience);

// The same for an agent that the user has not named. A listener of a stranger gets nothing.
Finding check_found_agent(const Result<AgentAddress>& address, std::optional<uid_t> stranger);

}  // namespace ddprof
