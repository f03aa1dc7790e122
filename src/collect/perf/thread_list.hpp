#pragma once

#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// Threads of a process right now; empty when it is gone.
std::vector<Tid> list_threads(Pid pid);

// Whether the task exists and has not ended (a zombie has).
bool is_alive(Tid tid);

}  // namespace ddprof
