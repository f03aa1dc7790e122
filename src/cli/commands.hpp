#pragma once

#include "cli/options.hpp"

namespace ddprof {

inline constexpr int kExitUsage = 2;  // the command line made no sense

// Does what the options ask for and returns the exit status. For the wrapper it returns only on failure: else
// this process has become the target.
int run_command(const Options& options);

}  // namespace ddprof
