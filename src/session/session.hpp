#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collect/collector.hpp"
#include "export/destination.hpp"
#include "process/file_provider.hpp"
#include "process/file_registry.hpp"
#include "process/identity_table.hpp"
#include "session/budget.hpp"
#include "session/cadence.hpp"
#include "session/code_index.hpp"
#include "session/finisher.hpp"
#include "session/idle_roots.hpp"
#include "session/pace.hpp"
#include "session/process_choice.hpp"
#include "session/profile_kind.hpp"
#include "session/session_options.hpp"
#include "session/stack_builder.hpp"
#include "session/summary.hpp"
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
  void handle(const SampleEvent& sample);
  void handle(const MapEvent& event);
  void handle(const ForkEvent& event);
  void handle(const CommEvent& event);
  void handle(const ExitEvent& event);
  void handle(const LostEvent& event) {
    if (cpu_ != nullptr) cpu_->add(event);
    processes_.note_lost_records();
  }
  template <typename AccountedEvent>  // of totals and throttling
  void handle(const AccountedEvent& event) {
    if (cpu_ != nullptr) cpu_->add(event);
  }

  [[nodiscard]] bool is_whole_host() const { return options_.target.is_host(); }
  [[nodiscard]] FileGuard file_guard() const { return {{options_.max_memory}, &continuity_.suspects}; }
  [[nodiscard]] NamerOptions guarded(NamerOptions naming) const {
    naming.guard = file_guard();
    return naming;
  }
  [[nodiscard]] std::vector<Pid> first_processes() const;
  void begin();
  void keep_within_budgets(Nanoseconds now);
  void slow_down(std::uint32_t before, std::uint32_t factor, Nanoseconds now);
  Result<void> keep_cadence(Nanoseconds now, const EventHandler& dispatch);
  Result<void> pause(const EventHandler& dispatch);
  [[nodiscard]] std::optional<Nanoseconds> paused_since() const {
    const Pausable* pausable = collector_.pausable();
    return pausable != nullptr ? pausable->paused_since() : std::nullopt;
  }
  void finish(const EventHandler& dispatch);
  void close_period(Nanoseconds end, bool is_final);
  [[nodiscard]] Legacy bequeath(Nanoseconds end) const;
  [[nodiscard]] ClosedPeriod describe(Nanoseconds end, std::vector<ClosedPart> parts);
  [[nodiscard]] std::string pauses_text(Nanoseconds length) const;
  [[nodiscard]] Nanoseconds unix_offset();
  [[nodiscard]] std::chrono::milliseconds time_to_wait() const;
  void update_summary();

  Collector& collector_;
  SessionOptions options_;
  Continuity own_continuity_;  // when nobody else has one for us
  Continuity& continuity_;
  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  ProcessTable processes_{
      files_, is_whole_host() ? ProcessTable::Follows::whole_host : ProcessTable::Follows::one_target};
  ProcessChoice choice_{processes_, {is_whole_host(), options_.target.filter, options_.target.max_processes}};
  CodeIndex code_{files_, file_guard()};
  StackBuilder stacks_;
  ThreadContexts contexts_;
  std::vector<std::unique_ptr<ProfileKind>> kinds_;  // in the order of their first events
  CpuAccount* cpu_ = nullptr;                        // of the kind that has a clock
  IdentityTable identities_;
  Legacy inherited_;  // from earlier workers of this run
  Finisher finisher_;
  CpuBudget cpu_budget_;
  IdleRoots idle_roots_;
  Summary summary_;
  Summary told_;  // as it was when the last period closed
  Nanoseconds started_{};
  Nanoseconds next_progress_{};
  std::uint64_t sequence_ = 0;
  std::uint64_t periods_ = 0;  // of this worker
  Pace pace_;
  Cadence cadence_;
  Nanoseconds next_look_{};  // at what we cost
  Nanoseconds next_shrink_{};
  Nanoseconds next_slow_notice_{};
  bool is_slowness_told_ = false;
  WorkerEnd ending_ = WorkerEnd::none;
  bool has_deep_stacks_ = false;
};

}  // namespace ddprof
