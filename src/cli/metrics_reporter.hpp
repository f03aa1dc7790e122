#pragma once

#include <functional>
#include <string>

#include "cli/journal.hpp"
#include "session/summary.hpp"

namespace ddprof {

// Sends what each period cost, and what it missed, to a statsd server (-b). The connection is made by the
// first period, in the process that profiles.
std::function<void(const Summary& before, const Summary& after)> metrics_reporter(const Options& options,
                                                                                  const Journal& journal);

}  // namespace ddprof
