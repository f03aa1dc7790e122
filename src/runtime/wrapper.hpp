#pragma once

#include <string>
#include <vector>

#include "runtime/profiling.hpp"

namespace ddprof {

// `ddprof program…`: starts the profiler beside, then becomes the program. The target keeps this PID and sees
// no child, descriptor, signal or environment that it would not have without us. Returns the exit status only
// when the program cannot be run; if profiling cannot start, one line says why and the program runs all the
// same.
int run_wrapped(const std::vector<std::string>& program, ProfilingRequest request);

}  // namespace ddprof
