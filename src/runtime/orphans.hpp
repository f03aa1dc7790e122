#pragma once

namespace ddprof {

// Whether processes whose parent ends become our children: as init of a PID namespace (the first process of a
// container), or when made the reaper of its descendants.
[[nodiscard]] bool adopts_orphans();

// For a process that stays in front and adopts orphans: splits in two. The child returns and goes on, with a
// single kind of children: its own. The parent stays behind as a small init: it reaps whatever ends, passes
// on signals that others send, and ends as the child does. Does nothing for who adopts nobody.
void leave_orphans_behind();

}  // namespace ddprof
