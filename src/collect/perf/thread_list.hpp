#pragma once

#include <vector>

#include "base/ids.hpp"

namespace ddprof {

// Threads of a process right now; empty when it is gone.
std::vector<Tid> list_threads(Pid pid);

struct ProcessParent {
  Pid pid{};
  Pid parent{};
};

// Every process on the host with its parent.
std::vector<ProcessParent> list_processes();

}  // namespace ddprof
