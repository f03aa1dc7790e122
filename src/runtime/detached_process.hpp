#pragma once

#include <sys/types.h>

#include <functional>

namespace ddprof {

// A new process that the caller cannot tell it has: no child, no signal when it ends, nothing in
// RUSAGE_CHILDREN.
//
// There is one exception. As init of a PID namespace (the first process of a container), or when made the
// reaper of one's own descendants, one inherits every orphan, and gets SIGCHLD and a zombie for each that
// ends. There the process is a silent child: wait() and waitpid() do not know it without __WALL, and nothing
// is signalled; but its zombie, if it ends first, stays as long as the caller.
struct DetachedProcess {
  pid_t silent_child = 0;  // only in that case
};

// `life` never returns. `silent_child` is -1, and errno says why, when no process could be made.
DetachedProcess start_detached(const std::function<void()>& life);

// Ends a silent child that did not make it, and its zombie. Nothing to do for others.
void end_silent_child(const DetachedProcess& process);

}  // namespace ddprof
