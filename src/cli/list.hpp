#pragma once

#include "cli/options.hpp"

namespace ddprof {

// ddprof list [DIR]: the profiles that are kept, the newest last, and what waits to be sent. Returns the exit
// status.
int list(const Options& options);

}  // namespace ddprof
