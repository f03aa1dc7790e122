#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.hpp"

namespace ddprof {

// CPU time that the kernel has charged to a process and to those of its children that it has waited for, by
// /proc/PID/stat. Counters of events miss the very start and end of each task, which is a tenth of a process
// that lives for a millisecond; this does not. Its resolution is a clock tick (10 ms).
class ChargedTime {
 public:
  // What was charged before now does not count.
  explicit ChargedTime(Pid pid) : pid_(pid), before_(read().value_or(0)) {}

  // The time charged so far, or an estimate from the last reading once the process is gone. `counted` is what
  // the collector counted until now.
  std::int64_t at(std::int64_t counted);

 private:
  [[nodiscard]] std::optional<std::int64_t> read() const;

  Pid pid_;
  std::int64_t before_;
  std::int64_t last_charged_ = 0;
  std::int64_t last_counted_ = 0;
};

}  // namespace ddprof
