#include <cmath>

#include "collect/perf/perf_collector.hpp"
#include "collect/perf/sample_event.hpp"

// What each kernel record means to the engine: whose it is, what it changes, and the event that it becomes.

namespace ddprof {

namespace {

Pid to_pid(std::uint32_t number) { return Pid{static_cast<std::int32_t>(number)}; }
Tid to_tid(std::uint32_t number) { return Tid{static_cast<std::int32_t>(number)}; }

}  // namespace

void PerfCollector::on_bytes(std::span<const std::byte> bytes, const EventHandler& handle) {
  auto identifier = record_identifier(bytes);
  const EventSlot* slot = identifier ? slots_.find(*identifier) : nullptr;
  if (slot == nullptr) {
    ++counters_.malformed_records;
    return;
  }
  if (slot->is_dropped) return;
  auto record = parse_record(bytes, plan_.events[slot->event].layout);
  if (!record) {
    ++counters_.malformed_records;
    return;
  }
  std::visit([&](const auto& any) { on_record(any, *slot, handle); }, *record);
}

// Events of a CPU see every process of the host.
bool PerfCollector::is_foreign(const EventSlot& slot, std::uint32_t pid) const {
  return slot.role == SlotRole::cpu_sampling && !follows_everything() && !tasks_.has_process(to_pid(pid));
}

// A task that was attached to may have inherited the events of its creator too, and then its descendants have
// both.
void PerfCollector::drop_doubles(const EventSlot& slot, Tid tid) {
  const TaskSet::Task* task = tasks_.find(tid);
  const bool is_known = task != nullptr && task->covered_from != Tid{};
  slots_.drop_doubles(slot, is_known ? task->covered_from : tid);
}

// Both kinds of events are open for a moment while modes change. A sharp border in time keeps one record of
// each.
bool PerfCollector::is_from_other_mode(const EventSlot& slot, std::uint64_t time) const {
  if (changed_at_ == 0) return false;
  return slot.role == SlotRole::cpu_sampling ? time < changed_at_ : time >= changed_at_;
}

void PerfCollector::on_record(const SampleRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (is_from_other_mode(slot, record.id.time)) return;
  if (is_foreign(slot, record.id.pid)) {
    ++counters_.filtered_samples;
    return;
  }
  if (is_paused() && record.id.time > paused_at_) return disable_sampling();  // it was forked in between
  Tid tid = to_tid(record.id.tid);
  drop_doubles(slot, tid);
  if (TaskSet::Task* task = tasks_.find(tid)) task->was_sampled = true;
  const PlannedEvent& planned = plan_.events[slot.event];
  // Only a fixed period can be changed in the kernel.
  const bool is_slowed = slot.role == SlotRole::cpu_sampling && planned.has_fixed_period();
  const double weight = is_slowed ? thinning_.weight_at(record.id.time) : thinning_.draw_weight();
  if (weight == 0) {
    ++counters_.thinned_samples;
    return;
  }
  ++counters_.samples;
  SampleEvent sample =
      to_sample_event(record, planned.spec, planned.index, clock_.to_monotonic(record.id.time));
  if (weight != 1) sample.value = std::llround(static_cast<double>(sample.value) * weight);
  sample.is_estimate = slot.role == SlotRole::cpu_sampling;
  if (contexts_)
    sample.thread_context =
        contexts_->take({sample.pid, sample.tid, sample.cpu, sample.address}, sample.time);
  handle(sample);
}

void PerfCollector::on_record(const MmapRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (is_from_other_mode(slot, record.id.time) || is_foreign(slot, record.pid)) return;
  if (!just_executed_.empty()) just_executed_.erase(to_int(to_pid(record.pid)));
  handle(to_map_event(record, clock_.to_monotonic(record.id.time)));
}

void PerfCollector::on_record(const CommRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (is_from_other_mode(slot, record.id.time)) return;
  Pid pid = to_pid(record.pid);
  if (awaits_exec_ && record.is_exec && pid == target_.root()) {
    awaits_exec_ = false;
    tasks_.add(Tid{to_int(pid)}, pid);
    tasks_.find(Tid{to_int(pid)})->is_counted = true;
  }
  if (is_foreign(slot, record.pid)) return;
  drop_doubles(slot, to_tid(record.tid));
  if (record.is_exec && !follows_everything()) tasks_.exec(pid);
  constexpr std::size_t kMostExecuting = 4096;  // records of what they mapped were lost
  if (just_executed_.size() >= kMostExecuting) just_executed_.clear();
  if (record.is_exec) just_executed_.insert(to_int(pid));
  handle(CommEvent{.pid = pid,
                   .tid = to_tid(record.tid),
                   .time = clock_.to_monotonic(record.id.time),
                   .is_exec = record.is_exec,
                   .comm = record.comm});
}

void PerfCollector::on_record(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (is_from_other_mode(slot, record.id.time)) return;
  if (record.is_fork)
    on_fork(record, slot, handle);
  else
    on_exit(record, slot, handle);
}

void PerfCollector::on_fork(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (is_foreign(slot, record.parent_pid)) return;
  if (!target_.has_children && record.pid != record.parent_pid) return;
  Tid tid = to_tid(record.tid);
  Tid parent_tid = to_tid(record.parent_tid);
  slots_.task_forked(tid);
  detached_.erase(to_int(tid));
  if (!follows_everything()) {
    drop_doubles(slot, parent_tid);
    const TaskSet::Task parent =
        tasks_.find(parent_tid) != nullptr ? *tasks_.find(parent_tid) : TaskSet::Task();
    // Known already: a task that was attached while its fork was on the way here.
    if (!tasks_.add(tid, to_pid(record.pid))) return slots_.task_is_below(tid, parent.covered_from);
    TaskSet::Task* child = tasks_.find(tid);
    child->covered_from = parent.covered_from;
    if (parent.is_counted && parent.counted_since <= record.id.time) {
      child->is_counted = true;
      child->counted_since = record.id.time;
    }
  }
  handle(ForkEvent{.pid = to_pid(record.pid),
                   .parent_pid = to_pid(record.parent_pid),
                   .tid = tid,
                   .parent_tid = parent_tid,
                   .time = clock_.to_monotonic(record.id.time)});
}

// At an exec that changes what the process may do, or that its user may not look into, the kernel ends all
// events of the task, whoever opened them, as if it had exited (begin_new_exec() of Linux 6.1). That is after
// the record of the exec and before those of what the new program maps: so it is told from an exit.
void PerfCollector::on_detached(Pid pid, std::uint64_t time, const EventHandler& handle) {
  if (follows_everything()) return;
  if (TaskSet::Task* task = tasks_.find(Tid{to_int(pid)})) task->is_counted = false;
  if (mode_ == PerfMode::per_cpu) return;  // it is counted anew, and was sampled all the while
  constexpr std::size_t kMostDetached = 4096;
  if (detached_.size() >= kMostDetached) detached_.clear();
  detached_.insert(to_int(pid));
  if (may_change_mode() && !is_paused()) {
    if (!is_changing_mode_) change_reason_ = "a set-user-ID exec ended events of a task";
    is_changing_mode_ = true;
    return;
  }
  constexpr std::size_t kSaid = 3;
  if (detached_.size() <= kSaid)
    notices_.push_back(
        fmt::format("process {} is not sampled since it executed a program that is set-user-ID, or that it "
                    "may not read: the kernel ends events of tasks there; with privilege those of CPUs go on",
                    to_int(pid)));
  tasks_.remove(Tid{to_int(pid)});
  handle(DetachedEvent{.pid = pid, .time = clock_.to_monotonic(time)});
}

void PerfCollector::on_exit(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (is_foreign(slot, record.pid)) return;
  const Pid pid = to_pid(record.pid);
  if (record.pid == record.tid && just_executed_.erase(to_int(pid)) > 0)
    return on_detached(pid, record.id.time, handle);
  if (slot.role != SlotRole::cpu_sampling && detached_.contains(to_int(pid))) return;  // told by a double
  Tid tid = to_tid(record.tid);
  drop_doubles(slot, tid);
  slots_.task_ended(tid);
  TaskSet::Task last_state;
  const bool was_followed = tasks_.remove(tid, &last_state);
  if (was_followed && !is_paused()) storm_.task_ended(record.id.time, last_state.was_sampled);
  if (!was_followed && !follows_everything()) return;  // told already, by a double
  handle(ExitEvent{.pid = to_pid(record.pid), .tid = tid, .time = clock_.to_monotonic(record.id.time)});
}

void PerfCollector::on_record(const ReadRecord& record, const EventSlot& slot, const EventHandler& handle) {
  Tid tid = to_tid(record.tid);
  drop_doubles(slot, tid);
  const PlannedEvent& planned = plan_.events[slot.event];
  if (planned.spec.value_source != EventSpec::ValueSource::period) return;
  auto value = std::llround(static_cast<double>(scaled_value(record)) * planned.spec.value_scale);
  if (value == 0) return;
  handle(TaskTotalEvent{.pid = to_pid(record.pid), .tid = tid, .event = planned.index, .value = value});
}

void PerfCollector::on_record(const LostRecord& record, const EventSlot& slot, const EventHandler& handle) {
  // No sample is among them, and the sum over all tasks is known without them.
  if (slot.role == SlotRole::task_totals) return;
  counters_.lost_records += record.count;
  may_have_missed_tasks_ = true;
  just_executed_.clear();  // what they mapped may be among them
  handle(LostEvent{.tid = to_tid(record.id.tid), .records = record.count});
}

void PerfCollector::on_record(const ThrottleRecord& record, const EventSlot&, const EventHandler& handle) {
  if (record.is_start) ++counters_.throttled;
  handle(ThrottleEvent{.time = clock_.to_monotonic(record.id.time), .is_start = record.is_start});
}

}  // namespace ddprof
