#include "collect/perf/perf_collector.hpp"
#include "process/proc_files.hpp"
#include "process/proc_files.hpp"

// How sampling starts, and how it changes from per-task to per-CPU events while the target runs.

namespace ddprof {

Result<void> PerfCollector::start() {
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

Result<void> PerfCollector::start_command() {
  Tid tid{to_int(target_.root())};
  if (per_cpu_use_ == PerCpuUse::always) {
    awaits_exec_ = true;
    TRY(attacher_.count_task(tid, Attacher::CountFrom::exec));
    return start_per_cpu("as asked");
  }
  tasks_.add(tid, target_.root());
  raise_descriptor_limit(descriptors_needed(1, rings_.cpus().size(), plan_.events.size()));
  return attacher_.sample_task(tid);
}

Result<void> PerfCollector::start_processes() {
  std::vector<RunningProcess> there = attacher_.list_target(target_.pids, self_);
  if (there.empty())
    return make_error(ErrorCode::not_found, "attach to process {}: no such process", to_int(target_.root()));
  const std::uint64_t threads = thread_count(there);
  std::uint64_t needed = descriptors_needed(threads, rings_.cpus().size(), plan_.events.size());
  std::uint64_t limit = raise_descriptor_limit(needed);
  bool is_too_much = needed > limit && plan_.per_cpu && per_cpu_use_ == PerCpuUse::when_better;
  if (per_cpu_use_ == PerCpuUse::always || is_too_much) {
    // Sampling starts before the listing: what is forked after it is seen in records.
    TRY(start_per_cpu(is_too_much ? fmt::format("{} threads would need {} descriptors", threads, needed)
                                  : "as asked"));
    for (const RunningProcess& process : attacher_.list_target(target_.pids, self_))
      for (Tid tid : list_threads(process.pid)) tasks_.add(tid, process.pid);
    if (auto counted = count_followed_tasks(); !counted.ok()) {
      has_exact_total_ = false;
      notices_.push_back(fmt::format("totals are estimates: {}", counted.error().message));
    }
    return {};
  }
  for (const auto& [tid, pid] : TRY(attacher_.sample_processes(target_.pids, self_, std::move(there)))) {
    tasks_.add(tid, pid);
    tasks_.find(tid)->covered_from = tid;
  }
  return {};
}

Result<void> PerfCollector::start_per_cpu(std::string reason) {
  TRY(attacher_.sample_cpus());
  TRY(slots_.enable(SlotRole::cpu_sampling));
  mode_ = PerfMode::per_cpu;
  mode_reason_ = std::move(reason);
  return {};
}

// Inheritance follows only what a task starts after its event was opened, so every living task needs its own.
Result<void> PerfCollector::count_followed_tasks() {
  const auto from = is_paused() ? Attacher::CountFrom::later : Attacher::CountFrom::now;
  for (Tid tid : tasks_.uncounted()) {
    auto counted = attacher_.count_task(tid, from);
    if (!counted.ok() && counted.error().code != ErrorCode::not_found) return counted;
    TaskSet::Task* task = tasks_.find(tid);
    task->is_counted = true;  // or it is already gone
    task->counted_since = clock_.now();
  }
  return {};
}

void PerfCollector::advance_mode() {
  if (follows_everything()) return;
  if (mode_ == PerfMode::per_cpu) {
    if (may_have_missed_tasks_) correct_tasks();
    // Tasks forked by one that was not counted yet.
    if (has_exact_total_ && !count_followed_tasks().ok()) has_exact_total_ = false;
    return;
  }
  if (is_paused()) return;  // nothing is known about tasks that nobody samples
  if (!is_changing_mode_) {
    if (!may_change_mode() || !storm_.is_raging(clock_.now())) return;
    is_changing_mode_ = true;
    change_reason_.clear();
  }
  bool is_settled = tasks_.uncounted().empty();
  auto result = is_settled ? change_to_per_cpu() : count_followed_tasks();
  if (!result.ok()) give_up_change(result.error());
}

void PerfCollector::give_up_change(const Error& error) {
  is_changing_mode_ = false;
  per_cpu_use_ = PerCpuUse::never;
  slots_.forget(SlotRole::counting);
  slots_.forget(SlotRole::cpu_sampling);
  notices_.push_back(fmt::format("short-lived tasks are not sampled: {}", error.message));
}

Result<void> PerfCollector::change_to_per_cpu() {
  if (change_reason_.empty())
    change_reason_ =
        fmt::format("fork-heavy: {} tasks ended before their first sample", storm_.unsampled_ends());
  TRY(start_per_cpu(change_reason_));
  changed_at_ = clock_.now();
  if (sender_) sender_({.step = EventNote::Step::mode_changed, .time = changed_at_}, -1);
  slots_.start_counting();
  slots_.retire(SlotRole::task_sampling);
  slots_.forget(SlotRole::task_totals);
  is_changing_mode_ = false;
  return {};
}

Result<void> PerfCollector::pause(const EventHandler& handle) {
  if (!plan_.has_own_side_band())
    return make_error(ErrorCode::unsupported, "pause: tasks would not be followed meanwhile");
  if (!is_paused()) {
    disable_sampling();
    paused_at_ = clock_.now();
    if (sender_) sender_({.step = EventNote::Step::paused, .time = paused_at_}, -1);
  }
  const std::uint64_t now = clock_.now();
  merge_rings(now, now, now, handle);
  return {};
}

// A task that is being forked by one that inherited its events may have copied them while they were on, and
// show up among their copies a moment later (inherit_event() of Linux 6.1): hence twice.
void PerfCollector::disable_sampling() {
  for (int pass = 0; pass < 2; ++pass) slots_.disable_all_but(kSideBandPosition);
}

Result<void> PerfCollector::resume() {
  if (!is_paused()) return {};
  for (int pass = 0; pass < 2; ++pass) TRY(slots_.enable_all_but(kSideBandPosition));
  paused_at_ = 0;
  if (sender_) sender_({.step = EventNote::Step::resumed}, -1);
  return {};
}

std::optional<Nanoseconds> PerfCollector::paused_since() const {
  return is_paused() ? std::optional(clock_.to_monotonic(paused_at_)) : std::nullopt;
}

// After lost records: a process whose parent is followed must have been forked by it, and a task that is gone
// has exited.
void PerfCollector::correct_tasks() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  std::uint64_t now = clock_.now();
  if (now - last_correction_ < kSecond) return;
  last_correction_ = now;
  may_have_missed_tasks_ = false;
  const std::vector<Pid> followed = tasks_.processes();
  for (const RunningProcess& process : attacher_.list_target(followed, self_)) {
    if (tasks_.has_process(process.pid)) continue;
    for (Tid tid : list_threads(process.pid)) {
      tasks_.add(tid, process.pid);
      tasks_.find(tid)->is_counted = true;  // by inheritance, whether or not its fork was seen
    }
  }
  for (Tid tid : tasks_.all())
    if (!is_alive(tid)) tasks_.remove(tid);
}

}  // namespace ddprof
