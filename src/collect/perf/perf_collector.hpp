#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/bpf/thread_context_reader.hpp"
#include "collect/collector.hpp"
#include "collect/perf/attach.hpp"
#include "collect/perf/event_plan.hpp"
#include "collect/perf/event_slots.hpp"
#include "collect/perf/perf_clock.hpp"
#include "collect/perf/perf_record.hpp"
#include "collect/perf/perf_ring.hpp"
#include "collect/perf/ring_set.hpp"
#include "collect/perf/sample_event.hpp"
#include "collect/perf/task_set.hpp"
#include "collect/target.hpp"

namespace ddprof {

// How much stack is copied with each sample of these events, on this machine, where nothing is chosen.
Result<std::uint32_t> automatic_stack_bytes(const std::vector<EventSpec>& events);

enum class PerfMode : std::uint8_t { per_task, per_cpu };

// Samples with perf_event_open. The calling thread must outlive the collector: the rings hang on a silent
// event of that thread, so that they do not depend on which target thread lives longest.
//
// It starts with per-task events: inherited by every child and thread, permitted to everybody, exact per
// task. Where a program turns out to be fork-heavy and the user may, it changes over to per-CPU events, which
// see tasks that live for less than a period and cost forks nothing; what belongs to the target is then
// filtered by pid.
class PerfCollector final : public Collector,
                            public Pausable,
                            public RateControl,
                            public ThreadContextSource,
                            public Handover {
 public:
  static Result<std::unique_ptr<PerfCollector>> open(const Target& target, const PerfOptions& options);

  PerfCollector(const Target& target, const PerfOptions& options, EventPlan plan, RingSet rings,
                RingSet totals_rings, PerfClock clock);

  // perf_collector.cpp
  Result<void> collect(std::chrono::milliseconds timeout, const EventHandler& handle) override;
  Result<void> drain(const EventHandler& handle) override;
  std::optional<std::int64_t> exact_total(std::uint32_t event) override;
  bool is_finished() override;
  [[nodiscard]] CollectorCounters counters() const override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] std::vector<std::string> notices() const override;
  [[nodiscard]] CollectorScope scope() const override;
  [[nodiscard]] std::vector<NeededCall> needed_calls() const override;

  Pausable* pausable() override { return this; }
  Result<void> pause(const EventHandler& handle) override;
  Result<void> resume() override;
  [[nodiscard]] std::optional<Nanoseconds> paused_since() const override;

  RateControl* rate_control() override { return this; }
  void slow_down(std::uint32_t factor) override;
  void deliver_at_once() override;

  ThreadContextSource* thread_contexts() override { return contexts_ ? this : nullptr; }
  bool read_thread_contexts(Pid pid, const ThreadVariable& variable) override {
    return contexts_ && contexts_->set(pid, variable);
  }

  Handover* handover() override { return this; }
  Result<void> take_over(int wake_fd, NoteSender sender) override;
  void follow(std::span<const std::byte> note, UniqueFd fd) override;
  void reclaim() override;

  [[nodiscard]] PerfMode mode() const { return mode_; }

 private:
  static constexpr std::uint32_t kSideBandPosition = 0;  // in the plan of a collector that has pauses

  [[nodiscard]] bool follows_everything() const { return target_.is_host(); }

  void merge_rings(std::uint64_t limit, std::uint64_t totals_limit, std::uint64_t now,
                   const EventHandler& handle);
  void open_contexts();

  // perf_collector_records.cpp: what each record means here
  void on_bytes(std::span<const std::byte> bytes, const EventHandler& handle);
  void on_record(const SampleRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const MmapRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const CommRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const ReadRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const LostRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const ThrottleRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_record(const OtherRecord&, const EventSlot&, const EventHandler&) {}
  void on_fork(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_exit(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle);
  void on_detached(Pid pid, std::uint64_t time, const EventHandler& handle);
  void drop_doubles(const EventSlot& slot, Tid tid);
  [[nodiscard]] bool is_foreign(const EventSlot& slot, std::uint32_t pid) const;
  [[nodiscard]] bool is_from_other_mode(const EventSlot& slot, std::uint64_t time) const;

  // perf_collector_modes.cpp: how sampling starts and changes
  Result<void> start();
  Result<void> start_command();
  Result<void> start_processes();
  Result<void> start_per_cpu(std::string reason);
  Result<void> count_followed_tasks();
  void advance_mode();
  [[nodiscard]] bool may_change_mode() const {
    return plan_.per_cpu && per_cpu_use_ == PerCpuUse::when_better;
  }
  void give_up_change(const Error& error);
  Result<void> change_to_per_cpu();
  void correct_tasks();
  void disable_sampling();
  [[nodiscard]] bool is_paused() const { return paused_at_ != 0; }

  Target target_;
  Pid self_;  // the process that opened this; it may be a child of the target
  PerCpuUse per_cpu_use_;
  int wake_fd_ = -1;  // borrowed
  EventPlan plan_;
  RingSet rings_;
  RingSet totals_rings_;  // see task_totals_attr; empty when they could not be had
  PerfClock clock_;
  EventSlots slots_;
  std::optional<ThreadContextReader> contexts_;  // none: not permitted, or not wanted
  Attacher attacher_;
  RingMerge merge_;
  RingMerge totals_merge_;
  TaskSet tasks_;
  ForkStorm storm_;
  EventNoteSender sender_;  // of a worker to its supervisor
  Thinning thinning_;
  PerfMode mode_ = PerfMode::per_task;
  std::string mode_reason_;
  bool is_changing_mode_ = false;
  bool has_no_room_for_more_ = false;  // for rings that deliver at once
  bool is_redirected_ = false;         // in a supervisor: events report to rings of its worker
  bool has_exact_total_ = true;
  bool awaits_exec_ = false;  // per-CPU from the start of a command: nothing counts before its exec
  bool may_have_missed_tasks_ = false;
  std::uint64_t changed_at_ = 0;  // records of per-task events count before, those of per-CPU events after
  std::uint64_t paused_at_ = 0;   // 0: not paused
  std::uint64_t last_correction_ = 0;
  std::uint64_t hung_up_at_ = 0;  // all events of tasks; 0: not yet
  // Processes that have executed a program and mapped nothing of it yet, and those whose events the kernel
  // took away at that moment.
  absl::flat_hash_set<std::int32_t> just_executed_;
  absl::flat_hash_set<std::int32_t> detached_;
  std::string change_reason_;  // of a change of modes under way
  CollectorCounters counters_;
  std::vector<std::string> notices_;
};

}  // namespace ddprof
