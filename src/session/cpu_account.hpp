#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "collect/collector.hpp"
#include "process/process_table.hpp"
#include "profile/aggregator.hpp"
#include "profile/cpu_ledger.hpp"
#include "session/continuity.hpp"
#include "session/kernel_times.hpp"

namespace ddprof {

// CPU time that the kernel has charged to the target, where it can be asked for.
struct ChargedCpu {
  std::function<std::int64_t(std::int64_t counted, bool is_final)> ask{};  // given what the collector counted
  // It is known to the microsecond when the target has ended. If not, it is asked for now and then, so that
  // the last answer is fresh by then.
  bool is_exact = false;
};

struct CpuAccountOptions {
  Pid root{};               // what cannot be told by thread is told here
  bool has_pauses = false;  // what the kernel charges goes on in them: it is not asked for
  ChargedCpu charged{};
};

// Makes the CPU values of every profile add up to what the kernel charged to the target: it hears of each
// event, and when a period closes adds the time that no sample stands for, under its thread and by its cause.
class CpuAccount {
 public:
  struct Totals {
    std::optional<std::int64_t> exact;  // what the kernel charged
    std::int64_t sampled = 0;
    std::map<Loss, std::int64_t> losses;
  };

  struct Clocked {                      // by what CPU time is measured
    std::uint32_t event = 0;            // the position of the clock among the events
    std::uint32_t column = 0;           // of its time
    std::uint32_t estimate_column = 0;  // of estimates of it
    std::int64_t period = 0;            // that a sample stands for
  };

  CpuAccount(const Clocked& clocked, const CpuAccountOptions& options, Collector& collector,
             const ProcessTable& processes);

  // `first` are the processes that are there already.
  void start(std::span<const Pid> first, Nanoseconds now);
  // Goes on where an earlier worker stopped, whether it meant to or not.
  void resume(const SessionHandover& handover, Nanoseconds now);
  void hand_over(SessionHandover& handover) const;
  // From now on a sample stands for so many times the period that was asked for.
  void slow_down(std::uint32_t factor);
  void add(const SampleEvent& sample);
  void add(const TaskTotalEvent& event);
  void add(const TickEvent& event);
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
  std::int64_t take_ticks(Aggregator& aggregator, bool is_final);
  void take_back_excess(AggregatedProfile& profile);

  Clocked clocked_;
  CpuAccountOptions options_;
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
  std::int64_t ticks_ = 0;             // CPU time of ticks that no profile tells yet
  bool has_tick_samples_ = false;      // in this period
  std::int64_t accounted_ = 0;         // CPU time in the profiles of earlier periods
  bool has_children_ = false;          // processes, not threads
};

}  // namespace ddprof
