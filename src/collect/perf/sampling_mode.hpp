#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "collect/perf/fine_sampling.hpp"
#include "collect/perf/perf_events.hpp"
#include "collect/perf/task_set.hpp"
#include "collect/target.hpp"

namespace ddprof {

enum class PerfMode : std::uint8_t { per_task, per_cpu };

// Which tasks belong to the target, and whether they are sampled by events of their own or by those of CPUs.
//
// It starts with per-task events: inherited by every child and thread, permitted to everybody, exact per
// task. Where much of its time turns out to be in short tasks and the user may, it changes over to per-CPU
// events, which sample tasks of any length alike and cost forks nothing; what belongs to the target is then
// filtered by pid. Where the user may not, such tasks get events of a shorter period (FineSampling).
class SamplingMode {
 public:
  SamplingMode(const Target& target, PerCpuUse per_cpu, PerfEvents& events);

  Result<void> start();
  // Between rounds of records: counts new tasks, changes modes, finds tasks whose records were lost.
  void advance();
  void take_over();
  void follow_change(std::uint64_t time);

  [[nodiscard]] PerfMode mode() const { return mode_; }
  [[nodiscard]] const std::string& reason() const { return reason_.empty() ? fine_.reason() : reason_; }
  [[nodiscard]] bool is_changing() const { return is_changing_; }
  [[nodiscard]] bool has_exact_total() const { return has_exact_total_; }
  [[nodiscard]] std::vector<std::string> notices() const;
  [[nodiscard]] bool follows_everything() const { return target_.is_host(); }
  [[nodiscard]] TaskSet& tasks() { return tasks_; }
  [[nodiscard]] const TaskSet& tasks() const { return tasks_; }
  // With per-CPU events: no task of the target is left.
  [[nodiscard]] bool have_all_ended() const;

  // What records tell.
  // Events of a CPU see every process of the host.
  [[nodiscard]] bool is_foreign(const EventSlot& slot, Pid pid) const {
    return slot.role == SlotRole::cpu_sampling && !follows_everything() && !tasks_.has_process(pid);
  }
  // Both kinds of events are open for a moment while modes change. A sharp border in time lets one record of
  // each through.
  [[nodiscard]] bool is_from_other_mode(const EventSlot& slot, std::uint64_t time) const;
  [[nodiscard]] bool follows_child(Pid parent, Pid child) const {
    return target_.has_children || child == parent;
  }
  void note_sample(Tid tid);
  // The kernel counted so much CPU time of a task that has ended, on one CPU.
  void note_total(std::uint64_t cpu_ns, std::uint64_t period_ns) {
    if (cpu_ns < period_ns * ShortTasks::kFewSamples) short_tasks_.note_total(cpu_ns);
  }
  // How many periods the tick stands for.
  double note_tick(Tid tid, std::uint64_t period) { return fine_.tick_weight(tid, tasks_.find(tid), period); }
  [[nodiscard]] const FineSampling& fine() const { return fine_; }
  void note_exec(Pid pid);
  // False: the fork is of a task that is known already.
  bool note_fork(Tid tid, Pid pid, Tid parent, std::uint64_t time);
  // False: the task was not followed, or its end is known already.
  bool note_exit(Tid tid, std::uint64_t time);
  void note_lost_records() { may_have_missed_tasks_ = true; }
  // The kernel has taken the events of the process away. True: those of CPUs go on, or will soon.
  bool note_detached(Pid pid);

 private:
  Result<void> start_command();
  Result<void> start_processes();
  Result<void> start_per_cpu(std::string reason);
  Result<void> count_followed_tasks();
  [[nodiscard]] bool may_change() const {
    return events_.plan().per_cpu && per_cpu_use_ == PerCpuUse::when_better;
  }
  void give_up_change(const Error& error);
  Result<void> change_to_per_cpu();
  void correct_tasks();

  Target target_;
  Pid self_;  // the process that opened this; it may be a child of the target
  PerCpuUse per_cpu_use_;
  PerfEvents& events_;
  TaskSet tasks_;
  ShortTasks short_tasks_;
  FineSampling fine_;
  PerfMode mode_ = PerfMode::per_task;
  std::string reason_;
  bool is_changing_ = false;
  std::string change_reason_;     // of a change under way
  std::uint64_t changed_at_ = 0;  // records of per-task events count before, those of per-CPU events after
  bool has_exact_total_ = true;
  bool awaits_exec_ = false;  // per-CPU from the start of a command: nothing counts before its exec
  bool may_have_missed_tasks_ = false;
  std::uint64_t last_correction_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace ddprof
