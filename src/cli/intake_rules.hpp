#pragma once

#include "cli/options.hpp"

namespace ddprof {

// Without an agent there must be a key and a place. Who typed --agentless is told what is wrong; one that a
// whole cluster has in its environment is told and left alone, and an agent is used. An agent's address in
// the environment is not the intake's.
Result<void> check_intake(Options& options);

}  // namespace ddprof
