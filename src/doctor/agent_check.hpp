#pragma once

#include <chrono>

#include "base/result.hpp"
#include "doctor/finding.hpp"
#include "export/agent_address.hpp"

namespace ddprof {

inline constexpr std::chrono::milliseconds kAgentPatience{1000};

// Whether it answers, and takes profiles.
Finding check_agent(const Result<AgentAddress>& address, std::chrono::milliseconds patience = kAgentPatience);

}  // namespace ddprof
