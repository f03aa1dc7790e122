#include "collect/perf/sampling_mode.hpp"

#include <unistd.h>

#include "process/proc_files.hpp"

namespace ddprof {

SamplingMode::SamplingMode(const Target& target, PerCpuUse per_cpu, PerfEvents& events)
    : target_(target), self_(Pid{::getpid()}), per_cpu_use_(per_cpu), events_(events), fine_(events) {
  // Without it a successor finds the tasks by their parents.
  if (auto roster = TaskRoster::create(); roster.ok()) tasks_.share(std::move(roster).value());
}

Result<void> SamplingMode::start() {
  switch (target_.kind) {
    case Target::Kind::host:
      has_exact_total_ = false;
      return start_per_cpu("every process");
    case Target::Kind::about_to_exec:
      return start_command();
    case Target::Kind::running:
      break;
  }
  return start_processes();
}

Result<void> SamplingMode::start_command() {
  Tid tid{to_int(target_.root())};
  if (per_cpu_use_ == PerCpuUse::always) {
    awaits_exec_ = true;
    TRY(events_.attacher().count_task(tid, Attacher::CountFrom::exec));
    return start_per_cpu("as asked");
  }
  tasks_.add(tid, target_.root());
  raise_descriptor_limit(descriptors_needed(1, events_.rings().cpus().size(), events_.plan().events.size()));
  return events_.attacher().sample_task(tid);
}

Result<void> SamplingMode::start_processes() {
  std::vector<RunningProcess> there = events_.attacher().list_target(target_.pids, self_);
  if (there.empty())
    return make_error(ErrorCode::not_found, "attach to process {}: no such process", to_int(target_.root()));
  const std::uint64_t threads = thread_count(there);
  std::uint64_t needed =
      descriptors_needed(threads, events_.rings().cpus().size(), events_.plan().events.size());
  std::uint64_t limit = raise_descriptor_limit(needed);
  bool is_too_much = needed > limit && events_.plan().per_cpu && per_cpu_use_ == PerCpuUse::when_better;
  if (per_cpu_use_ == PerCpuUse::always || is_too_much) {
    // Sampling starts before the listing: what is forked after it is seen in records.
    TRY(start_per_cpu(is_too_much ? fmt::format("{} threads would need {} descriptors", threads, needed)
                                  : "as asked"));
    for (const RunningProcess& process : events_.attacher().list_target(target_.pids, self_))
      for (Tid tid : list_threads(process.pid)) tasks_.add(tid, process.pid);
    if (auto counted = count_followed_tasks(); !counted.ok()) {
      has_exact_total_ = false;
      notices_.push_back(fmt::format("totals are estimates: {}", counted.error().message));
    }
    return {};
  }
  for (const auto& [tid, pid] :
       TRY(events_.attacher().sample_processes(target_.pids, self_, std::move(there)))) {
    tasks_.add(tid, pid);
    tasks_.find(tid)->covered_from = tid;
  }
  return {};
}

Result<void> SamplingMode::start_per_cpu(std::string reason) {
  TRY(events_.attacher().sample_cpus());
  TRY(events_.slots().enable(SlotRole::cpu_sampling));
  mode_ = PerfMode::per_cpu;
  reason_ = std::move(reason);
  return {};
}

// Inheritance follows only what a task starts after its event was opened, so every living task needs its own.
Result<void> SamplingMode::count_followed_tasks() {
  const auto from = events_.is_paused() ? Attacher::CountFrom::later : Attacher::CountFrom::now;
  for (Tid tid : tasks_.uncounted()) {
    Result<void> counted;
    if (mode_ == PerfMode::per_task) counted = events_.attacher().keep_apart_from_children(tid);
    if (counted.ok()) counted = events_.attacher().count_task(tid, from);
    if (!counted.ok() && counted.error().code != ErrorCode::not_found) return counted;
    TaskSet::Task* task = tasks_.find(tid);
    task->is_counted = true;  // or it is already gone
    task->counted_since = events_.clock().now();
  }
  return {};
}

void SamplingMode::advance() {
  if (follows_everything()) return;
  if (mode_ == PerfMode::per_cpu) {
    if (may_have_missed_tasks_) correct_tasks();
    // Tasks forked by one that was not counted yet.
    if (has_exact_total_ && !count_followed_tasks().ok()) has_exact_total_ = false;
    return;
  }
  if (events_.is_paused()) return;  // nothing is known about tasks that are not sampled
  if (!is_changing_) {
    const bool have_mattered = short_tasks_.matter(events_.clock().now());
    if (!may_change()) return fine_.advance(short_tasks_, tasks_);
    if (!have_mattered) return;
    is_changing_ = true;
    change_reason_.clear();
  }
  bool is_settled = tasks_.uncounted().empty();
  auto result = is_settled ? change_to_per_cpu() : count_followed_tasks();
  if (!result.ok()) give_up_change(result.error());
}

void SamplingMode::give_up_change(const Error& error) {
  is_changing_ = false;
  per_cpu_use_ = PerCpuUse::never;
  events_.slots().forget(SlotRole::counting);
  events_.slots().forget(SlotRole::cpu_sampling);
  notices_.push_back(fmt::format("short-lived tasks are not sampled: {}", error.message));
}

Result<void> SamplingMode::change_to_per_cpu() {
  if (change_reason_.empty())
    change_reason_ =
        fmt::format("short tasks: {} ended within {} periods", short_tasks_.ended(), ShortTasks::kFewSamples);
  TRY(start_per_cpu(change_reason_));
  changed_at_ = events_.clock().now();
  events_.report({.step = EventNote::Step::mode_changed, .time = changed_at_});
  events_.slots().start_counting();
  events_.slots().retire(SlotRole::task_sampling);
  events_.slots().forget(SlotRole::task_totals);
  events_.slots().close(SlotRole::task_ticks);  // which kept tasks apart
  is_changing_ = false;
  return {};
}

// After lost records: a process whose parent is followed must have been forked by it, and a task that is gone
// has exited.
void SamplingMode::correct_tasks() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  std::uint64_t now = events_.clock().now();
  if (now - last_correction_ < kSecond) return;
  last_correction_ = now;
  may_have_missed_tasks_ = false;
  const std::vector<Pid> followed = tasks_.processes();
  for (const RunningProcess& process : events_.attacher().list_target(followed, self_)) {
    if (tasks_.has_process(process.pid)) continue;
    for (Tid tid : list_threads(process.pid)) {
      tasks_.add(tid, process.pid);
      tasks_.find(tid)->is_counted = true;  // by inheritance, whether or not its fork was seen
    }
  }
  for (Tid tid : tasks_.all())
    if (!is_alive(tid)) tasks_.remove(tid);
}

void SamplingMode::take_over() {
  tasks_.read_roster(mode_ == PerfMode::per_cpu);
  may_have_missed_tasks_ = true;  // by a predecessor
}

void SamplingMode::follow_change(std::uint64_t time) {
  if (!events_.plan().per_cpu || mode_ == PerfMode::per_cpu) return;
  mode_ = PerfMode::per_cpu;
  reason_ = "chosen by an earlier worker";
  changed_at_ = time;
}

bool SamplingMode::have_all_ended() const {
  return awaits_exec_ ? !is_alive(Tid{to_int(target_.root())}) : tasks_.empty();
}

bool SamplingMode::is_from_other_mode(const EventSlot& slot, std::uint64_t time) const {
  if (changed_at_ == 0) return false;
  return slot.role == SlotRole::cpu_sampling ? time < changed_at_ : time >= changed_at_;
}

void SamplingMode::note_sample(Tid tid) {
  short_tasks_.note_sample();
  if (TaskSet::Task* task = tasks_.find(tid)) ++task->samples;
}

void SamplingMode::note_exec(Pid pid) {
  if (awaits_exec_ && pid == target_.root()) {
    awaits_exec_ = false;
    tasks_.add(Tid{to_int(pid)}, pid);
    tasks_.find(Tid{to_int(pid)})->is_counted = true;
  }
}

bool SamplingMode::note_fork(Tid tid, Pid pid, Tid parent_tid, std::uint64_t time) {
  const TaskSet::Task parent =
      tasks_.find(parent_tid) != nullptr ? *tasks_.find(parent_tid) : TaskSet::Task();
  // Known already: a task that was attached while its fork was on the way here.
  if (!tasks_.add(tid, pid)) {
    events_.slots().task_is_below(tid, parent.covered_from);
    return false;
  }
  TaskSet::Task* child = tasks_.find(tid);
  child->covered_from = parent.covered_from;
  fine_.note_fork(*child, parent, parent_tid, time);
  if (parent.is_counted && parent.counted_since <= time) {
    child->is_counted = true;
    child->counted_since = time;
  }
  return true;
}

std::vector<std::string> SamplingMode::notices() const {
  std::vector<std::string> all = notices_;
  if (!fine_.notice().empty()) all.push_back(fine_.notice());
  return all;
}

bool SamplingMode::note_exit(Tid tid, std::uint64_t time) {
  TaskSet::Task last_state;
  const bool was_followed = tasks_.remove(tid, &last_state);
  if (was_followed && !events_.is_paused()) short_tasks_.note_end(time, last_state.samples);
  return was_followed;
}

bool SamplingMode::note_detached(Pid pid) {
  if (TaskSet::Task* task = tasks_.find(Tid{to_int(pid)})) task->is_counted = false;
  if (mode_ == PerfMode::per_cpu) return true;  // it is counted anew, and was sampled all the while
  if (!may_change() || events_.is_paused()) return false;
  if (!is_changing_) change_reason_ = "a set-user-ID exec ended events of a task";
  is_changing_ = true;
  return true;
}

}  // namespace ddprof
