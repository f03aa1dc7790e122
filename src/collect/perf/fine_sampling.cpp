#include "collect/perf/fine_sampling.hpp"

#include <algorithm>

namespace ddprof {

namespace {

// Of the mean life of a task, between these.
constexpr double kShortestPart = 1.0 / 8;
constexpr double kLongestPart = 1.0 / 5;
constexpr double kShortestPeriod = 200'000;  // a sample costs some 15 us of it
// A task that lives when periods change has no ticks from then on: with one change in twenty lives few do.
constexpr std::uint64_t kLivesBetweenDraws = 20;
constexpr std::uint64_t kShortestBetweenDraws = 100'000'000;
// Until a forked process has run its first instructions, page faults included.
constexpr double kProcessStart = 60'000;

}  // namespace

void FineSampling::advance(const ShortTasks& short_tasks, TaskSet& tasks) {
  if (is_given_up_) return;
  const std::uint64_t now = events_.clock().now();
  if (!short_tasks.matter_now() || short_tasks.mean_ns() == 0) {
    if (period_ != 0) close(now);
    return;
  }
  if (period_ == 0 || now >= next_draw_) {
    replaced_ = period_ != 0 ? generation_ : 0;
    close(now);
    draw(now, short_tasks, tasks);
  }
  for (Parent& parent : parents_)
    if (!parent.is_open && !is_given_up_) open_on(parent, tasks);
}

void FineSampling::close(std::uint64_t now) {
  if (period_ == 0) return;
  events_.slots().close(SlotRole::task_ticks);
  closed_at_[generation_ % kRemembered] = now;
  period_ = 0;
  for (Parent& parent : parents_) parent.is_open = false;
}

void FineSampling::draw(std::uint64_t now, const ShortTasks& short_tasks, const TaskSet& tasks) {
  const auto life = static_cast<double>(short_tasks.mean_ns());
  // Between these also for tasks so short that the shortest period is a large part of their life.
  const double shortest = std::max(life * kShortestPart, kShortestPeriod);
  const double longest = shortest * (kLongestPart / kShortestPart);
  period_ = static_cast<std::uint64_t>(shortest + random_.fraction() * (longest - shortest));
  next_draw_ = now + std::max(kShortestBetweenDraws, kLivesBetweenDraws * short_tasks.mean_ns());
  ++generation_;
  std::erase_if(parents_, [&](const Parent& parent) {
    return !parent.has_forked || tasks.find(parent.tid) == nullptr;
  });
  for (Parent& parent : parents_) parent.has_forked = false;
  reason_ = "short tasks: with shorter periods while they matter";
}

void FineSampling::open_on(Parent& parent, TaskSet& tasks) {
  parent.is_open = true;  // or it is gone
  TaskSet::Task* task = tasks.find(parent.tid);
  if (task == nullptr) return;
  auto opened = events_.attacher().sample_ticks(parent.tid, period_);
  if (!opened.ok() && opened.error().code != ErrorCode::not_found) return give_up(opened.error());
  if (replaced_ == 0 || task->ticks_generation != replaced_) task->ticks_since = events_.clock().now();
  task->ticks_generation = generation_;
  task->ticks = std::max(task->ticks, 1U);  // the first one has nothing before it
}

void FineSampling::give_up(const Error& error) {
  close(events_.clock().now());
  is_given_up_ = true;
  notice_ = fmt::format("short tasks are sampled at whole periods of their life only: {}", error.message);
}

void FineSampling::note_fork(TaskSet::Task& child, const TaskSet::Task& parent, Tid parent_tid,
                             std::uint64_t time) {
  const bool is_covered = covers(parent, time);
  remember_parent(parent_tid, is_covered);
  if (!is_covered) return;
  child.ticks_generation = parent.ticks_generation;
  child.ticks_since = time;
}

void FineSampling::remember_parent(Tid tid, bool is_covered) {
  const auto known =
      std::find_if(parents_.begin(), parents_.end(), [&](const Parent& parent) { return parent.tid == tid; });
  if (known != parents_.end())
    known->has_forked = true;
  else if (is_covered)
    return;
  else if (parents_.size() < kMostParents)
    parents_.push_back({tid});
  else if (period_ == 0)
    parents_[oldest_++ % kMostParents] = {tid};
}

bool FineSampling::covers(const TaskSet::Task& task, std::uint64_t time) const {
  if (task.ticks_generation == 0 || time < task.ticks_since) return false;
  if (task.ticks_generation == generation_ && period_ != 0) return true;
  return generation_ - task.ticks_generation < kRemembered &&
         time < closed_at_[task.ticks_generation % kRemembered];
}

double FineSampling::tick_weight(Tid tid, TaskSet::Task* task, std::uint64_t period) const {
  if (task == nullptr || task->ticks_generation == 0 || task->ticks++ > 0) return 1;
  const bool has_start = !events_.plan().kernel && to_int(tid) == to_int(task->pid);
  return has_start ? 1.5 - std::min(kProcessStart / static_cast<double>(period), 1.0) : 1.5;
}

}  // namespace ddprof
