#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collect/collector.hpp"
#include "collect/event_spec.hpp"
#include "export/destination.hpp"
#include "process/file_provider.hpp"
#include "process/file_registry.hpp"
#include "process/process_table.hpp"
#include "profile/aggregator.hpp"
#include "profile/cpu_ledger.hpp"
#include "session/code_index.hpp"
#include "session/columns.hpp"
#include "session/finisher.hpp"
#include "session/stack_builder.hpp"
#include "session/summary.hpp"
#include "session/thread_times.hpp"

namespace ddprof {

struct SessionOptions {
  std::vector<EventSpec> events;  // as the collector was opened with
  std::optional<Pid> root;        // the process that was started or attached to; none: the whole host
  bool is_started_by_us = false;  // root is about to exec: nothing of it needs to be read from /proc
  bool samples_kernel = true;
  std::optional<std::chrono::seconds> period;    // close a profile this often; none: one for the whole run
  std::optional<std::chrono::seconds> duration;  // stop after this long
  bool symbolize = true;
  std::string service;
  std::vector<std::string> notices;
  // CPU time that the kernel has charged to the target, where it can be asked for; given what the collector
  // counted. Asked about once a second, so that the last answer is fresh when the target ends.
  std::function<std::int64_t(std::int64_t counted, bool is_final)> charged_cpu;
  bool is_charge_exact = false;  // to the microsecond when the target has ended, not to the clock tick
  std::function<void(const SampleEvent&, const BuiltStack&, const ProcessTable&, const FileRegistry&)>
      on_sample;  // --show-samples
  std::function<void(const SampleEvent&, const Stack&, const ModuleMap&, const RuleDictionary&,
                     const FileRegistry&)>
      on_stack;                                     // stack cases
  std::function<void(const Summary&)> on_progress;  // about once a second, while there is something to do
};

// The program: collect, unwind, aggregate; when a period closes, name, encode and send.
class Session {
 public:
  Session(Collector& collector, Destination& destination, SessionOptions options);

  // Until the target has ended, the duration is over or `stop` is set. Everything collected has been sent, or
  // has failed with a reason in the summary, when it returns.
  Summary run(const std::atomic<bool>& stop);

 private:
  void handle(const SampleEvent& sample);
  void handle(const MapEvent& event);
  void handle(const ForkEvent& event);
  void handle(const CommEvent& event);
  void handle(const ExitEvent& event);
  void handle(const TaskTotalEvent& event);
  void handle(const LostEvent& event);
  void handle(const ThrottleEvent& event);

  void close_period(bool is_final);
  void take_back_excess(AggregatedProfile& profile, std::uint32_t column);
  [[nodiscard]] std::int64_t account_cpu_time(bool is_final);
  [[nodiscard]] ClosedPeriod describe(AggregatedProfile profile);
  [[nodiscard]] std::chrono::milliseconds time_to_wait() const;
  void update_summary();

  Collector& collector_;
  SessionOptions options_;
  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  ProcessTable processes_{files_};
  CodeIndex code_{files_};
  StackBuilder stacks_;
  ColumnLayout columns_;
  Aggregator aggregator_;
  std::optional<CpuLedger> ledger_;  // of the first clock event
  std::uint32_t clock_event_ = 0;
  ThreadTimes thread_times_;
  Finisher finisher_;
  Summary summary_;
  Nanoseconds started_{};
  Nanoseconds period_started_{};
  Nanoseconds throttled_since_{};
  Nanoseconds next_progress_{};
  Nanoseconds next_charge_{};
  std::map<std::pair<StopReason, FileId>, std::uint64_t> stopped_;
  std::int64_t estimated_ = 0;         // CPU time of this period's estimates, as sampled
  std::int64_t estimated_before_ = 0;  // CPU time of earlier periods that was told by estimates
  std::int64_t accounted_ = 0;         // CPU time in the profiles of earlier periods
  std::uint64_t sequence_ = 0;
  std::uint64_t handled_ = 0;  // events
  std::chrono::milliseconds pace_{1};
  bool has_deep_stacks_ = false;
  bool has_child_processes_ = false;
};

}  // namespace ddprof
