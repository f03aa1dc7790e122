#pragma once

#include "cli/options.hpp"

namespace ddprof {

// ddprof convert IN OUT: reads a profile of any format that we know and writes it in the one that the
// extension of OUT, or --to, names. "-" is standard input or output. Returns the exit status.
int convert(const Options& options);

}  // namespace ddprof
