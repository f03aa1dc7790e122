#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collect/collector.hpp"
#include "export/destination.hpp"
#include "process/file_provider.hpp"
#include "process/file_registry.hpp"
#include "process/process_table.hpp"
#include "session/code_index.hpp"
#include "session/idle_roots.hpp"
#include "session/live_heap_profile.hpp"
#include "session/postponed_samples.hpp"
#include "session/process_choice.hpp"
#include "session/profile_kind.hpp"
#include "session/session_options.hpp"
#include "session/thread_contexts.hpp"

namespace ddprof {

// The program: collect, unwind, aggregate; when a period closes, name, encode and send.
class Session {
 public:
  Session(Collector& collector, Destination& destination, SessionOptions options);

  // Until the target has ended, the duration is over or `stop` is set. Everything collected has been sent, or
  // has failed with a reason in the summary, when it returns. Earlier too, when another worker should go on:
  // Summary::ending says so.
  Summary run(const std::atomic<bool>& stop);

 private:
  // In the order of a run, as session.cpp tells it.
  void begin();
  Result<void> collect(const EventHandler& dispatch);
  void handle(const SampleEvent& sample);
  void add(const SampleEvent& sample, bool is_profiled);
  void add_postponed();
  void add_postponed_of(Pid pid);
  void publish_tables();
  void find_unseen_allocator();
  void add_heap_losses();
  void handle(const MapEvent& event);
  void handle(const ForkEvent& event);
  void handle(const CommEvent& event);
  void handle(const ExitEvent& event);
  void handle(const LostEvent& event);
  template <typename AccountedEvent>  // of totals and throttling
  void handle(const AccountedEvent& event) {
    if (cpu_ != nullptr) cpu_->add(event);
  }
  Result<void> keep_cadence(const EventHandler& dispatch);
  Result<void> flush(const EventHandler& dispatch);
  Result<void> pause(const EventHandler& dispatch);
  void close_period(Nanoseconds end, bool is_final);
  [[nodiscard]] ClosedPeriod describe(const PeriodTimes& times, std::vector<ClosedPart> parts);
  [[nodiscard]] absl::flat_hash_map<FileId, JitRuntime> generated_code_owners() const;
  void finish_period(const ClosedPeriod& period);  // on the finishing thread
  void keep_within_budgets();
  void close_last_period(const EventHandler& dispatch);

  [[nodiscard]] SessionHandover hand_over() const;
  void update_summary();

  [[nodiscard]] bool is_whole_host() const { return options_.target.is_host(); }
  [[nodiscard]] FileGuard file_guard() const { return {{options_.limits.memory}, &continuity_.suspects}; }
  [[nodiscard]] FileThreads::Limits waiting_limits() const;
  [[nodiscard]] std::vector<Pid> first_processes() const;
  [[nodiscard]] std::optional<Nanoseconds> paused_since() const;
  [[nodiscard]] std::chrono::milliseconds time_to_wait() const;
  [[nodiscard]] Counters sampling_counters() const;
  [[nodiscard]] Counters export_counters() const;

  Collector& collector_;
  Destination& destination_;
  SessionOptions options_;
  const Clock& clock_;
  Continuity own_continuity_;  // where the supervisor has none for us
  Continuity& continuity_;
  const SessionHandover earlier_;  // from earlier workers of this run

  // Who is sampled, and their code.
  ProcFileProvider provider_;
  FileThreads file_threads_{waiting_limits()};
  FileRegistry files_{provider_, &file_threads_};
  ProcessTable processes_{
      files_, is_whole_host() ? ProcessTable::Follows::whole_host : ProcessTable::Follows::one_target};
  ProcessChoice choice_{processes_, {is_whole_host(), options_.target.filter, options_.target.max_processes}};
  CodeIndex code_{files_, file_threads_, file_guard()};
  StackBuilder stacks_;
  ThreadContexts contexts_;
  PostponedSamples postponed_;

  // What becomes of the samples of a period.
  std::vector<std::unique_ptr<ProfileKind>> kinds_;  // in the order of their first events
  CpuAccount* cpu_ = nullptr;                        // of the kind that has a clock
  std::optional<LiveHeapProfile> live_;
  IdentityTable identities_;

  // The course of the run.
  Periods periods_;
  Pace pace_;
  Budgets budgets_;
  IdleRoots idle_roots_;
  Counters counted_;          // by this worker, beyond what others count themselves
  HeapCounters heap_losses_;  // that profiles have told
  std::string unseen_allocator_;
  Summary summary_;
  Summary last_summary_;  // when the last period closed
  Nanoseconds next_progress_{};
  WorkerEnd ending_ = WorkerEnd::none;
  bool has_deep_stacks_ = false;

  // The finishing thread's.
  std::optional<Namer> namer_;
  std::atomic<bool> must_shrink_{false};
  mutable std::mutex export_mutex_;  // guards the next two
  Exported exported_;
  Counters exports_;  // sent and failed
  Finisher finisher_;
};

}  // namespace ddprof
