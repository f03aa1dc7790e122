#pragma once

#include "cli/options.hpp"
#include "runtime/profiling.hpp"

namespace ddprof {

// What the options mean for a run: events and rings, periods, destinations, and who prints what.
ProfilingRequest make_profiling_request(const Options& options);
// Of -p, --container and -g.
Target running_target(const Options& options);
PrivilegeLimits privilege_limits(const Options& options);

// Where relative paths begin. Empty if it was deleted: they will fail with their own message.
std::string working_directory();

// "ddprof: message" and the cure under it, on standard error.
void say_error(const Error& error);

}  // namespace ddprof
