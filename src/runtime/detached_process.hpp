#pragma once

#include <sys/types.h>

#include <functional>

namespace ddprof {

// Whether processes whose parent ends become our children: as init of a PID namespace (the first process of a
// container), or when made the reaper of its descendants.
[[nodiscard]] bool adopts_orphans();

// For a process that stays in front and adopts orphans: splits in two. The child returns and goes on, with a
// single kind of children: its own. The parent stays behind as a small init: it reaps whatever ends, passes
// on signals that others send, and ends as the child does. Does nothing in a process that adopts none.
void leave_orphans_behind();

// A new process that the caller cannot tell it has: no child, no signal when it ends, nothing in
// RUSAGE_CHILDREN.
//
// There is one exception. A process that adopts orphans (see above) would get the process as a child, and has
// to wait for it when it ends. There it is a silent child: wait() and waitpid() do not know it without
// __WALL. If it ends first its zombie stays as long as the caller, and after an exec the kernel sends one
// SIGCHLD.
struct DetachedProcess {
  pid_t silent_child = 0;  // only in that case
};

// `life` never returns. `silent_child` is -1, and errno says why, when no process could be made.
DetachedProcess start_detached(const std::function<void()>& life);

// The same for a process that should end soon, as `await_end` tells: nothing is left of it then, also not for
// who adopts orphans. If it does not end, it is left behind. False, and errno says why: no process could be
// made.
bool run_detached(const std::function<void()>& life, const std::function<bool()>& await_end);

// Ends a silent child that did not make it, and its zombie. Nothing to do for others.
void end_silent_child(const DetachedProcess& process);

}  // namespace ddprof
