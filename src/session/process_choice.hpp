#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/ids.hpp"
#include "collect/collector.hpp"
#include "process/process_filter.hpp"
#include "process/process_table.hpp"
#include "session/counters.hpp"

namespace ddprof {

// Which processes of the whole host are profiled: what filters and the number of processes allow. Decided
// before anything is unwound. One target with all its descendants is always profiled.
class ProcessChoice {
 public:
  enum class Choice : std::uint8_t {
    profiled,
    excluded,    // by a filter, once per incarnation
    over_limit,  // there is no room for one more, yet
  };
  struct Options {
    bool is_whole_host = false;
    std::shared_ptr<const ProcessFilter> filter{};  // null: everything
    std::optional<std::size_t> max_processes{};     // none: no limit
  };
  ProcessChoice(ProcessTable& processes, Options options)
      : processes_(processes), options_(std::move(options)) {}

  Choice choose(const SampleEvent& sample, bool is_cpu_time);
  // Whether its code may be needed. Opening files of what is excluded would be in vain.
  bool follows(Pid pid);
  void note_exit(Pid pid);
  // Processes without a sample since the last call make room for others.
  void close_period();

  [[nodiscard]] const ProcessCount& excluded() const { return excluded_; }
  [[nodiscard]] const ProcessCount& over_limit() const { return over_limit_; }  // without `processes`

 private:
  bool is_excluded(Process& process);
  bool has_room_for(const Process& process);

  ProcessTable& processes_;
  Options options_;
  absl::flat_hash_map<std::int32_t, bool> followed_;  // by pid: sampled in this period; empty without a limit
  ProcessCount excluded_;
  ProcessCount over_limit_;
};

}  // namespace ddprof
