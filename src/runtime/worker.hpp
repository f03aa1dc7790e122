#pragma once

#include <atomic>

#include "base/unique_fd.hpp"
#include "runtime/fault_record.hpp"
#include "runtime/profiling.hpp"
#include "session/continuity.hpp"

namespace ddprof {

// Memory that the supervisor and its workers share. A worker parses what strangers wrote and may be made to
// write anything here: the supervisor uses nothing of it unchecked.
struct SharedState {
  Continuity continuity;
  FaultRecord fault;
  std::atomic<int> farewell{kNoFarewell};  // the status that a worker is about to end with

  static constexpr int kNoFarewell = -1;
};

// How a worker ends when it ends by itself. Any other way is a crash.
inline constexpr int kWorkDone = 0;
inline constexpr int kExportsFailed = 8;
inline constexpr int kNoWork = 9;      // it could not begin
inline constexpr int kReplaceMe = 16;  // plus the WorkerEnd

// The life of a worker, in a process of its own: reads the rings, unwinds, aggregates, names, exports. It
// ends by itself when the target has ended, on SIGTERM, or when its supervisor dies; on SIGUSR1, or when it
// has used up its budget, for a successor to go on. All signals are blocked when it is called.
[[noreturn]] void run_worker(PreparedProfiling& prepared, const Target& target,
                             const ProfilingRequest& request, SharedState& shared, UniqueFd notes,
                             pid_t supervisor);

}  // namespace ddprof
