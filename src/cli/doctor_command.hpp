#pragma once

#include "cli/options.hpp"

namespace ddprof {

// ddprof doctor. The exit status: 0 when profiling works at all, else 1.
int doctor(const Options& options);

}  // namespace ddprof
