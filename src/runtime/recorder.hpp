#pragma once

#include <string>
#include <vector>

#include "runtime/profiling.hpp"

namespace ddprof {

// `ddprof record program…`: runs the program as a child and stays in front. Ctrl-C reaches the target, which
// decides; the exit status, or the signal that ended it, becomes ours.
int run_recorded(const std::vector<std::string>& program, ProfilingRequest request);

// `ddprof -p PID` and `ddprof -g`: in front until the target ends, the duration is over, or SIGINT or SIGTERM
// comes.
int run_attached(const Target& target, ProfilingRequest request);

}  // namespace ddprof
