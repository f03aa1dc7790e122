#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "collect/bpf/thread_context_reader.hpp"
#include "collect/perf/event_plan.hpp"
#include "collect/perf/event_slots.hpp"
#include "collect/perf/ring_set.hpp"
#include "process/proc_files.hpp"

namespace ddprof {

// Opens the planned events on tasks and CPUs, redirected into the rings.
class Attacher {
 public:
  // `totals_rings` may be empty: then the total of each task stays unknown.
  Attacher(const EventPlan& plan, const RingSet& rings, const RingSet& totals_rings, EventSlots& slots)
      : plan_(plan), rings_(rings), totals_rings_(totals_rings), slots_(slots) {}

  // From now on events are opened with the program that reads contexts. `reader` outlives this.
  void read_contexts_with(const ThreadContextReader& reader) { contexts_ = &reader; }

  // Samples one task and what it starts from now on. Not started for a task that is about to exec: that
  // starts it.
  Result<void> sample_task(Tid tid);
  // Has the kernel never exchange the events of the task with those of what it starts from now on, as long as
  // a slot of task_ticks is open.
  Result<void> keep_apart_from_children(Tid tid);
  // Samples one task and what it starts from now on by its clocks, once in every `period` nanoseconds.
  Result<void> sample_ticks(Tid tid, std::uint64_t period);
  struct AttachedTask {
    Tid tid{};
    Pid pid{};
  };
  // Samples every thread of running processes and, where the plan has children, of all that descend from them
  // but for `except`: lists and attaches until nothing new appears. What is started by a task already
  // attached inherits its events; the doubles that the listing makes are found when they report. Returns what
  // was attached; fewer tasks than there are when descriptors ran out, which leaves a notice, or where a
  // process may not be sampled, which is in refused(). `target` is what list_target() has just said.
  Result<std::vector<AttachedTask>> sample_processes(std::span<const Pid> named, Pid except,
                                                     std::vector<RunningProcess> target);
  // The processes that it would attach to now: those of `named` that there are, then their descendants.
  [[nodiscard]] std::vector<RunningProcess> list_target(std::span<const Pid> named, Pid except) const;
  // Samples all tasks of every CPU, not yet started.
  Result<void> sample_cpus();
  // Counts one task and what it starts from now on, beginning with its exec, at once, or when told to.
  enum class CountFrom : std::uint8_t { exec, now, later };
  Result<void> count_task(Tid tid, CountFrom from);

  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }
  [[nodiscard]] const std::vector<Error>& refused() const { return refused_; }

 private:
  Result<void> sample_threads(Pid pid, std::vector<AttachedTask>& attached);
  Result<void> sample_process(const RunningProcess& process, std::vector<AttachedTask>& attached);
  Result<void> total_task(Tid tid, std::uint32_t event, std::size_t position);

  const EventPlan& plan_;
  const RingSet& rings_;
  const RingSet& totals_rings_;
  EventSlots& slots_;
  const ThreadContextReader* contexts_ = nullptr;
  std::vector<std::string> notices_;
  std::vector<Error> refused_;
};

std::uint64_t thread_count(std::span<const RunningProcess> processes);
// How many descriptors sampling that many threads takes.
std::uint64_t descriptors_needed(std::size_t threads, std::size_t cpus, std::size_t events);
// Raises the soft limit of open files up to the hard one if `needed` exceeds it; the limit that is then in
// force.
std::uint64_t raise_descriptor_limit(std::uint64_t needed);

}  // namespace ddprof
