#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "collect/bpf/thread_context_reader.hpp"
#include "collect/perf/event_plan.hpp"
#include "collect/perf/event_slots.hpp"
#include "collect/perf/ring_set.hpp"

namespace ddprof {

// Opens the planned events on tasks and CPUs, redirected into the rings.
class Attacher {
 public:
  // `totals_rings` may be empty: then nobody tells what each task used.
  Attacher(const EventPlan& plan, const RingSet& rings, const RingSet& totals_rings, EventSlots& slots)
      : plan_(plan), rings_(rings), totals_rings_(totals_rings), slots_(slots) {}

  // From now on events are opened with the program that reads contexts. `reader` outlives this.
  void read_contexts_with(const ThreadContextReader& reader) { contexts_ = &reader; }

  // Samples one task and what it starts from now on. Not started for a task that is about to exec: that
  // starts it.
  Result<void> sample_task(Tid tid);
  // Samples every thread of a process: lists and attaches until no new thread appears. Threads that were
  // created by one already attached inherit its events; the doubles that the listing makes are found when
  // they report. Returns the threads attached; fewer than there are when descriptors ran out, which leaves a
  // notice.
  Result<std::vector<Tid>> sample_process(Pid pid);
  // Samples all tasks of every CPU, not yet started.
  Result<void> sample_cpus();
  // Counts one task and what it starts from now on, beginning with its exec, at once, or when told to.
  enum class CountFrom : std::uint8_t { exec, now, later };
  Result<void> count_task(Tid tid, CountFrom from);

  [[nodiscard]] const std::vector<std::string>& notices() const { return notices_; }

 private:
  Result<void> total_task(Tid tid, std::uint32_t event, std::size_t position);

  const EventPlan& plan_;
  const RingSet& rings_;
  const RingSet& totals_rings_;
  EventSlots& slots_;
  const ThreadContextReader* contexts_ = nullptr;
  std::vector<std::string> notices_;
};

// How many descriptors sampling that many threads takes.
std::uint64_t descriptors_needed(std::size_t threads, std::size_t cpus, std::size_t events);
// Raises the soft limit of open files up to the hard one if `needed` exceeds it; the limit that is then in
// force.
std::uint64_t raise_descriptor_limit(std::uint64_t needed);

}  // namespace ddprof
