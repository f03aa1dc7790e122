#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "process/process_table.hpp"
#include "profile/cpu_ledger.hpp"

namespace ddprof {

// CPU time since boot, in nanoseconds, that a hypervisor gave to others while something here wanted to run,
// and that interrupts took; 0 where nothing tells. The counters of events count it as the task's, the
// scheduler may not charge it.
std::int64_t stolen_time();

// The same from the text of /proc/stat.
std::int64_t parse_stolen_time(std::string_view proc_stat);

// Exact CPU time of living threads, from /proc/PID/task/TID/schedstat, counted from the moment that they were
// first followed. Only asked for when a period closes with time that nothing explains.
class ThreadTimes {
 public:
  // The threads that exist before the first record; later ones start at zero.
  void start_from(Pid pid);
  // For a successor: threads that no fork was seen of began at an unknown time.
  void start_late() { is_late_ = true; }
  void begin(Tid tid) {
    if (is_late_) born_.insert(to_int(tid));
  }
  void end(Tid tid) {
    if (is_late_) ended_.push_back(to_int(tid));
  }
  void forget_ended() {
    for (std::int32_t tid : ended_) born_.erase(tid);
    ended_.clear();
  }
  [[nodiscard]] bool knows_beginning(Tid tid) const { return !is_late_ || born_.contains(to_int(tid)); }

  [[nodiscard]] std::vector<CpuLedger::ThreadTotal> read(const ProcessTable& processes);

 private:
  static constexpr std::size_t kMaxThreads = 4096;  // per period; the rest is told by process

  absl::flat_hash_map<std::int32_t, std::int64_t> baseline_;
  bool is_late_ = false;
  absl::flat_hash_set<std::int32_t> born_;  // since then, when late
  std::vector<std::int32_t> ended_;
};

}  // namespace ddprof
