#include "collect/perf/record_reader.hpp"

#include <cmath>

#include "process/proc_files.hpp"

namespace ddprof {

namespace {

Pid to_pid(std::uint32_t number) { return Pid{static_cast<std::int32_t>(number)}; }
Tid to_tid(std::uint32_t number) { return Tid{static_cast<std::int32_t>(number)}; }

}  // namespace

void RecordReader::read(std::span<const std::byte> bytes, const EventHandler& handle) {
  auto identifier = record_identifier(bytes);
  const EventSlot* slot = identifier ? events_.slots().find(*identifier) : nullptr;
  if (slot == nullptr) {
    ++counters_.malformed_records;
    return;
  }
  if (slot->is_dropped) return;
  auto record = parse_record(bytes, events_.plan().events[slot->event].layout);
  if (!record) {
    ++counters_.malformed_records;
    return;
  }
  std::visit([&](const auto& any) { on_record(any, *slot, handle); }, *record);
}

// A task that was attached to may have inherited the events of its creator too, and then its descendants have
// both.
void RecordReader::drop_doubles(const EventSlot& slot, Tid tid) {
  const TaskSet::Task* task = mode_.tasks().find(tid);
  const bool is_known = task != nullptr && task->covered_from != Tid{};
  events_.slots().drop_doubles(slot, is_known ? task->covered_from : tid);
}

void RecordReader::on_record(const SampleRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (mode_.is_from_other_mode(slot, record.id.time)) return;
  if (mode_.is_foreign(slot, to_pid(record.id.pid))) {
    ++counters_.filtered_samples;
    return;
  }
  if (events_.is_paused() && record.id.time > events_.paused_at())
    return events_.disable_sampling();  // it was forked in between
  Tid tid = to_tid(record.id.tid);
  if (slot.role == SlotRole::task_ticks) return on_tick(record, slot, handle);
  drop_doubles(slot, tid);
  mode_.note_sample(tid);
  const PlannedEvent& planned = events_.plan().events[slot.event];
  const TaskSet::Task* task = mode_.tasks().find(tid);
  if (planned.has_ticks() && task != nullptr && mode_.fine().covers(*task, record.id.time)) return;
  // Only a fixed period can be changed in the kernel.
  const bool is_slowed = slot.role == SlotRole::cpu_sampling && planned.has_fixed_period();
  const double weight = is_slowed ? thinning_.weight_at(record.id.time) : thinning_.draw_weight();
  if (weight == 0) {
    ++counters_.thinned_samples;
    return;
  }
  const bool is_of_cpu = slot.role == SlotRole::cpu_sampling;
  hand_sample(record, slot, weight, is_of_cpu ? SampleBasis::cpu_period : SampleBasis::own_period, handle);
}

// Each tick counts, and as many become samples as the rate that was asked for gives.
void RecordReader::on_tick(const SampleRecord& record, const EventSlot& slot, const EventHandler& handle) {
  const PlannedEvent& planned = events_.plan().events[slot.event];
  const double weight = mode_.note_tick(to_tid(record.id.tid), record.period);
  const double value = static_cast<double>(record.period) * weight;
  handle(TickEvent{.pid = to_pid(record.id.pid),
                   .tid = to_tid(record.id.tid),
                   .event = planned.index,
                   .value = std::llround(value * planned.spec.value_scale)});
  const double wanted = static_cast<double>(planned.task_attr.sample_period) * thinning_.factor();
  if (!thinning_.draw(value / wanted)) {
    ++counters_.thinned_samples;
    return;
  }
  hand_sample(record, slot, wanted / static_cast<double>(record.period), SampleBasis::ticks, handle);
}

void RecordReader::hand_sample(const SampleRecord& record, const EventSlot& slot, double weight,
                               SampleBasis basis, const EventHandler& handle) {
  const PlannedEvent& planned = events_.plan().events[slot.event];
  ++counters_.samples;
  SampleEvent sample =
      to_sample_event(record, planned.spec, planned.index, events_.clock().to_monotonic(record.id.time));
  if (weight != 1) sample.value = std::llround(static_cast<double>(sample.value) * weight);
  sample.basis = basis;
  if (ThreadContextReader* contexts = events_.contexts())
    sample.thread_context = contexts->take({sample.pid, sample.tid, sample.cpu, sample.address}, sample.time);
  handle(sample);
}

void RecordReader::on_record(const MmapRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (mode_.is_from_other_mode(slot, record.id.time) || mode_.is_foreign(slot, to_pid(record.pid))) return;
  if (!just_executed_.empty()) just_executed_.erase(to_int(to_pid(record.pid)));
  handle(to_map_event(record, events_.clock().to_monotonic(record.id.time)));
}

void RecordReader::on_record(const CommRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (mode_.is_from_other_mode(slot, record.id.time)) return;
  Pid pid = to_pid(record.pid);
  if (record.is_exec) mode_.note_exec(pid);
  if (mode_.is_foreign(slot, to_pid(record.pid))) return;
  drop_doubles(slot, to_tid(record.tid));
  if (record.is_exec && !mode_.follows_everything()) mode_.tasks().exec(pid);
  constexpr std::size_t kMostExecuting = 4096;  // records of what they mapped were lost
  if (just_executed_.size() >= kMostExecuting) just_executed_.clear();
  if (record.is_exec) just_executed_.insert(to_int(pid));
  handle(CommEvent{.pid = pid,
                   .tid = to_tid(record.tid),
                   .time = events_.clock().to_monotonic(record.id.time),
                   .is_exec = record.is_exec,
                   .comm = record.comm});
}

void RecordReader::on_record(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (mode_.is_from_other_mode(slot, record.id.time)) return;
  if (record.is_fork)
    on_fork(record, slot, handle);
  else
    on_exit(record, slot, handle);
}

void RecordReader::on_fork(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (mode_.is_foreign(slot, to_pid(record.parent_pid))) return;
  if (!mode_.follows_child(to_pid(record.parent_pid), to_pid(record.pid))) return;
  Tid tid = to_tid(record.tid);
  Tid parent_tid = to_tid(record.parent_tid);
  events_.slots().task_forked(tid);
  detached_.erase(to_int(tid));
  if (!mode_.follows_everything()) {
    drop_doubles(slot, parent_tid);
    if (!mode_.note_fork(tid, to_pid(record.pid), parent_tid, record.id.time)) return;
  }
  handle(ForkEvent{.pid = to_pid(record.pid),
                   .parent_pid = to_pid(record.parent_pid),
                   .tid = tid,
                   .parent_tid = parent_tid,
                   .time = events_.clock().to_monotonic(record.id.time)});
}

// At an exec that changes what the process may do, or that its user may not look into, the kernel ends all
// events of the task, of all openers, as if it had exited (begin_new_exec() of Linux 6.1). That is after
// the record of the exec and before those of what the new program maps: this tells it from an exit.
void RecordReader::on_detached(Pid pid, std::uint64_t time, const EventHandler& handle) {
  if (mode_.follows_everything()) return;
  const bool is_still_sampled = mode_.note_detached(pid);
  if (mode_.mode() == PerfMode::per_cpu) return;
  constexpr std::size_t kMostDetached = 4096;
  if (detached_.size() >= kMostDetached) detached_.clear();
  detached_.insert(to_int(pid));
  if (is_still_sampled) return;
  constexpr std::size_t kSaid = 3;
  if (detached_.size() <= kSaid)
    notices_.push_back(
        fmt::format("process {} is not sampled since it executed a program that is set-user-ID, or that it "
                    "may not read: the kernel ends events of tasks there; with privilege those of CPUs go on",
                    to_int(pid)));
  mode_.tasks().remove(Tid{to_int(pid)});
  handle(DetachedEvent{.pid = pid, .time = events_.clock().to_monotonic(time)});
}

void RecordReader::on_exit(const TaskRecord& record, const EventSlot& slot, const EventHandler& handle) {
  if (mode_.is_foreign(slot, to_pid(record.pid))) return;
  const Pid pid = to_pid(record.pid);
  if (record.pid == record.tid && just_executed_.erase(to_int(pid)) > 0)
    return on_detached(pid, record.id.time, handle);
  if (slot.role != SlotRole::cpu_sampling && detached_.contains(to_int(pid)))
    return;  // a double has reported it
  Tid tid = to_tid(record.tid);
  drop_doubles(slot, tid);
  events_.slots().task_ended(tid);
  const bool was_followed = mode_.note_exit(tid, record.id.time);
  if (!was_followed && !mode_.follows_everything()) return;  // a double has reported it
  handle(
      ExitEvent{.pid = to_pid(record.pid), .tid = tid, .time = events_.clock().to_monotonic(record.id.time)});
}

void RecordReader::on_record(const ReadRecord& record, const EventSlot& slot, const EventHandler& handle) {
  Tid tid = to_tid(record.tid);
  drop_doubles(slot, tid);
  const PlannedEvent& planned = events_.plan().events[slot.event];
  if (planned.spec.value_source != EventSpec::ValueSource::period) return;
  if (planned.has_ticks()) mode_.note_total(record.value, planned.task_attr.sample_period);
  auto value = std::llround(static_cast<double>(scaled_value(record)) * planned.spec.value_scale);
  if (value == 0) return;
  handle(TaskTotalEvent{.pid = to_pid(record.pid), .tid = tid, .event = planned.index, .value = value});
}

void RecordReader::on_record(const LostRecord& record, const EventSlot& slot, const EventHandler& handle) {
  // No sample is among them, and the sum over all tasks is known without them.
  if (slot.role == SlotRole::task_totals) return;
  counters_.lost_records += record.count;
  mode_.note_lost_records();
  just_executed_.clear();  // what they mapped may be among them
  handle(LostEvent{.tid = to_tid(record.id.tid), .records = record.count});
}

void RecordReader::on_record(const ThrottleRecord& record, const EventSlot&, const EventHandler& handle) {
  if (record.is_start) ++counters_.throttled;
  handle(ThrottleEvent{.time = events_.clock().to_monotonic(record.id.time), .is_start = record.is_start});
}

void RecordReader::forget_ended_detached() {
  absl::erase_if(detached_, [](std::int32_t pid) { return !is_alive(Tid{pid}); });
}

}  // namespace ddprof
