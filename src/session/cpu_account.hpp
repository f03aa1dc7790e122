#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "collect/collector.hpp"
#include "process/process_table.hpp"
#include "profile/aggregator.hpp"
#include "profile/cpu_ledger.hpp"
#include "session/continuity.hpp"
#include "session/session_options.hpp"
#include "session/thread_times.hpp"

namespace ddprof {

// Makes the CPU values of every profile add up to what the kernel charged to the target: it hears of each
// event, and when a period closes adds the time that no sample stands for, under its thread and by its cause.
class CpuAccount {
 public:
  struct Totals {
    std::optional<std::int64_t> exact;  // what the kernel charged
    std::int64_t sampled = 0;
    std::map<Loss, std::int64_t> losses;
  };

  // `event` is the position of the clock among the events, the columns are those of its time and of the
  // estimates of it. The options outlive the account.
  CpuAccount(std::uint32_t event, std::uint32_t column, std::uint32_t estimate_column,
             const SessionOptions& options, Collector& collector, const ProcessTable& processes);

  // `first` are the processes that are there already.
  void start(std::span<const Pid> first);
  // Goes on where an earlier worker stopped, whether it meant to or not.
  void resume(const Legacy& legacy);
  void bequeath(Legacy& legacy) const;
  // From now on a sample stands for so many times the period that was asked for.
  void slow_down(std::uint32_t factor);
  void add(const SampleEvent& sample);
  void add(const TaskTotalEvent& event);
  void add(const ThrottleEvent& event);
  void add(const DetachedEvent& event) { ledger_.add_detached({event.pid, Tid{to_int(event.pid)}}); }
  void add(const LostEvent& event) { ledger_.add_lost(event.records); }
  // Whether processes are followed that no record will tell the end of.
  [[nodiscard]] bool has_detached() const { return ledger_.has_detached(); }
  void add(const ForkEvent& event) {
    has_children_ = has_children_ || event.pid != event.parent_pid;
    thread_times_.begin(event.tid);
  }

  // Reads the charge when it is time to, in case the target is gone when it is needed. Asking costs
  // milliseconds (other CPUs are interrupted), so it is done ever more rarely.
  void refresh_charge(Nanoseconds now);

  // The profile of the period that ends, with everything that it should hold.
  AggregatedProfile close(Aggregator& aggregator, Nanoseconds begin, Nanoseconds end, bool is_final);

  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  void find_exact_total(bool is_final);
  void add_entries(const std::vector<CpuLedger::Entry>& entries, Aggregator& aggregator);
  std::int64_t add_unsampled_time(Aggregator& aggregator, bool is_final);
  void take_back_excess(AggregatedProfile& profile);

  std::uint32_t event_;
  const SessionOptions& options_;
  std::uint32_t column_, estimate_column_;
  Collector& collector_;
  const ProcessTable& processes_;
  CpuLedger ledger_;
  ThreadTimes thread_times_;
  Totals totals_;
  Nanoseconds started_{};
  Nanoseconds next_charge_{};
  Nanoseconds throttled_since_{};
  std::int64_t stolen_before_ = 0;
  std::int64_t estimated_ = 0;         // CPU time of this period's estimates, as sampled
  std::int64_t estimated_before_ = 0;  // CPU time of earlier periods that was told by estimates
  std::int64_t accounted_ = 0;         // CPU time in the profiles of earlier periods
  bool has_children_ = false;          // processes, not threads
};

}  // namespace ddprof
