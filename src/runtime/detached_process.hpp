#pragma once

#include <sys/types.h>

#include <functional>

namespace ddprof {

// A new process that the caller cannot tell it has: no child, no signal when it ends, nothing in
// RUSAGE_CHILDREN.
//
// There is one exception. Who adopts orphans (see orphans.hpp) would get the process as a child, and has to
// wait for it when it ends. There it is a silent child: wait() and waitpid() do not know it without __WALL.
// If it ends first its zombie stays as long as the caller, and after an exec the kernel sends one SIGCHLD.
struct DetachedProcess {
  pid_t silent_child = 0;  // only in that case
};

// `life` never returns. `silent_child` is -1, and errno says why, when no process could be made.
DetachedProcess start_detached(const std::function<void()>& life);

// Ends a silent child that did not make it, and its zombie. Nothing to do for others.
void end_silent_child(const DetachedProcess& process);

}  // namespace ddprof
