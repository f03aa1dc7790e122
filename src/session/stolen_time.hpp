#pragma once

#include <cstdint>
#include <string_view>

namespace ddprof {

// CPU time since boot, in nanoseconds, that a hypervisor gave to others while something here wanted to run,
// and that interrupts took; 0 where nothing tells. The counters of events count it as the task's, the
// scheduler may not charge it.
std::int64_t stolen_time();

// The same from the text of /proc/stat.
std::int64_t parse_stolen_time(std::string_view proc_stat);

}  // namespace ddprof
