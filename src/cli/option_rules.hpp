#pragma once

#include "base/result.hpp"
#include "cli/options.hpp"

namespace ddprof {

// What the settings mean together: the command (wrap, attach, global), the events, the service's name. Fails
// on combinations that cannot be run.
Result<void> apply_option_rules(Options& options);

}  // namespace ddprof
