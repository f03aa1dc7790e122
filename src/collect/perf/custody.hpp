#pragma once

#include <cstdint>
#include <functional>

namespace ddprof {

enum class SlotRole : std::uint8_t {
  task_sampling,  // inherited, one task and its descendants on one CPU
  task_totals,    // likewise, but only to tell the exact value of each task that ends
  cpu_sampling,   // all tasks of one CPU
  counting,       // inherited, one task and its descendants, all CPUs, no ring
};

// Events outlive the worker that reads them: the process that forked it (the supervisor) holds the same
// descriptors. What a worker opens, closes and changes it notes there, so that its successor, forked from the
// supervisor, knows.
struct CustodyNote {
  enum class Step : std::uint8_t {
    opened,            // with the descriptor; event, tid, position, role
    retired,           // role
    forgotten,         // role
    task_dropped,      // tid, position
    counting_started,  // all counting events
    mode_changed,      // from events of tasks to events of CPUs; time
    paused,            // nothing is sampled since `time`
    resumed,
    redirected,  // to rings of the worker's own, which end with it
  };
  Step step = Step::opened;
  SlotRole role = SlotRole::task_sampling;
  std::uint32_t event = 0;
  std::int32_t tid = 0;
  std::uint32_t position = 0;
  std::uint64_t time = 0;
};

// `fd` is -1 unless something was opened. It stays the caller's.
using NoteSender = std::function<void(const CustodyNote& note, int fd)>;

}  // namespace ddprof
