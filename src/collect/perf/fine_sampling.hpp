#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "collect/perf/perf_events.hpp"
#include "collect/perf/sample_event.hpp"
#include "collect/perf/task_set.hpp"

namespace ddprof {

// Samples short tasks where events of CPUs are not permitted.
//
// An event of a task begins a fresh period with it, so a task's first period is never seen, and of a task
// that lives for one and a half always the same moment. While such tasks matter, those that fork get another
// event, which their children inherit, with some six periods in the mean life of a task. Its ticks replace
// the samples of those tasks.
//
// A tick stands for the time around it, half a period to each side; the first one also for what was before,
// but for the time that the kernel took to start a process, where that may not be sampled. So the ticks of a
// task sum up to its time on average, and are not late by half a period. What is left of a bias depends on
// how the period fits into the life of a task: it is drawn anew again and again.
class FineSampling {
 public:
  explicit FineSampling(PerfEvents& events) : events_(events) {}

  // Opens events on tasks that fork, with another period now and then, or closes them all.
  void advance(const ShortTasks& short_tasks, TaskSet& tasks);
  // A child has the events that its parent had at its fork.
  void note_fork(TaskSet::Task& child, const TaskSet::Task& parent, Tid parent_tid, std::uint64_t time);
  // Whether the task's samples at that time were replaced by ticks.
  [[nodiscard]] bool covers(const TaskSet::Task& task, std::uint64_t time) const;
  // How many periods one more tick of the task stands for; null: a task that is not known.
  double tick_weight(Tid tid, TaskSet::Task* task, std::uint64_t period) const;

  // For the summary; empty: not in use.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  // Why it could not be used.
  [[nodiscard]] const std::string& notice() const { return notice_; }

 private:
  // Tasks that have events of their own. Others inherit from them.
  static constexpr std::size_t kMostParents = 8;
  static constexpr std::size_t kRemembered = 64;  // generations

  // A task that has forked, and has no such events by inheritance.
  struct Parent {
    Tid tid{};
    bool is_open = false;
    bool has_forked = true;  // since periods were drawn
  };

  void remember_parent(Tid tid, bool is_covered);
  void close(std::uint64_t now);
  void draw(std::uint64_t now, const ShortTasks& short_tasks, const TaskSet& tasks);
  void open_on(Parent& parent, TaskSet& tasks);
  void give_up(const Error& error);

  PerfEvents& events_;
  Coins random_;
  std::uint32_t generation_ = 0;  // of events with one period
  std::uint64_t period_ = 0;      // 0: none are open
  std::uint32_t replaced_ = 0;    // the generation before, if there was no gap between them
  std::uint64_t next_draw_ = 0;
  std::array<std::uint64_t, kRemembered> closed_at_{};  // by generation
  std::vector<Parent> parents_;
  std::size_t oldest_ = 0;  // of the parents, while none is open
  bool is_given_up_ = false;
  std::string reason_;
  std::string notice_;
};

}  // namespace ddprof
