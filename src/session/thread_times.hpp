#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "process/process_table.hpp"
#include "profile/cpu_ledger.hpp"

namespace ddprof {

// Exact CPU time of living threads, from /proc/PID/task/TID/schedstat, counted from the moment that they were
// first followed. Only asked for when a period closes with time that nothing explains.
class ThreadTimes {
 public:
  // The threads that exist before the first record; later ones start at zero.
  void start_from(Pid pid);
  [[nodiscard]] std::vector<CpuLedger::ThreadTotal> read(const ProcessTable& processes) const;

 private:
  static constexpr std::size_t kMaxThreads = 4096;  // per period; the rest is told by process

  absl::flat_hash_map<std::int32_t, std::int64_t> baseline_;
};

}  // namespace ddprof
