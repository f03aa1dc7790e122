#include "collect/perf/perf_collector.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cmath>

#include "collect/perf/perf_refusal.hpp"

namespace ddprof {

namespace {

// A record becomes visible some time after it was stamped; the slowest writer (a 64 KiB stack copied from
// cold memory) needs tens of microseconds. Anything older than this is in final order.
constexpr std::uint64_t kSettleTime = 100'000;

// While modes change, tasks that were just forked are looked for at this pace.
constexpr std::chrono::milliseconds kChangePace{5};
// When no event of a task is left: until its last records have settled, and until the end of those that live
// on without events, whose time is still told.
constexpr std::chrono::milliseconds kSettlePace{1};
constexpr std::chrono::milliseconds kLookPace{100};

}  // namespace

Result<std::unique_ptr<PerfCollector>> PerfCollector::open(const Target& target, const PerfOptions& options) {
  auto collector =
      std::make_unique<PerfCollector>(target, options.per_cpu, TRY(PerfEvents::open(target, options)));
  TRY(collector->mode_.start());
  return collector;
}

Result<void> PerfCollector::take_over(int wake_fd, NoteSender sender) {
  wake_fd_ = wake_fd;
  EventNoteSender send_note;
  if (sender)
    send_note = [sender = std::move(sender)](const EventNote& note, int fd) { sender(bytes_of(note), fd); };
  TRY(events_->take_over(std::move(send_note)));
  mode_.take_over();
  slow_down(1);  // a predecessor may have slowed events down
  return {};
}

void PerfCollector::follow(std::span<const std::byte> bytes, UniqueFd fd) {
  auto note = parse_event_note(bytes);
  if (!note) return;
  events_->follow(*note, std::move(fd));
  if (note->step == EventNote::Step::mode_changed) mode_.follow_change(note->time);
}

void PerfCollector::slow_down(std::uint32_t factor) {
  events_->slow_down(factor);
  records_.slow_down(factor);
}

Result<void> PerfCollector::collect(std::chrono::milliseconds timeout, const EventHandler& handle) {
  if (is_finished()) timeout = std::chrono::milliseconds{0};
  if (mode_.is_changing()) timeout = std::min(timeout, kChangePace);
  if (hung_up_at_ != 0) timeout = std::min(timeout, records_.has_detached() ? kLookPace : kSettlePace);
  if (TRY(events_->wait(timeout, wake_fd_))) ++wakeups_;

  const std::uint64_t now = events_->clock().now();
  // A caller that wants samples at once cannot wait for the order to settle; what comes late is rare and only
  // read late.
  read_rings(events_->rings().is_immediate() ? now : now - kSettleTime, now - kSettleTime, now, handle);
  mode_.advance();
  return {};
}

void PerfCollector::read_rings(std::uint64_t limit, std::uint64_t totals_limit, std::uint64_t now,
                               const EventHandler& handle) {
  events_->read(limit, totals_limit, now,
                [&](std::span<const std::byte> record) { records_.read(record, handle); });
}

Result<void> PerfCollector::pause(const EventHandler& handle) {
  TRY(events_->pause());
  const std::uint64_t now = events_->clock().now();
  read_rings(now, now, now, handle);
  return {};
}

std::optional<Nanoseconds> PerfCollector::paused_since() const {
  if (!events_->is_paused()) return std::nullopt;
  return events_->clock().to_monotonic(events_->paused_at());
}

Result<void> PerfCollector::drain(const EventHandler& handle) {
  for (SlotRole role : {SlotRole::task_sampling, SlotRole::cpu_sampling, SlotRole::counting})
    events_->slots().disable(role);
  read_rings(RingMerge::kNoLimit, RingMerge::kNoLimit, events_->clock().now(), handle);
  return {};
}

std::optional<std::int64_t> PerfCollector::exact_total(std::uint32_t event) {
  if (!mode_.has_exact_total()) return std::nullopt;
  const std::vector<PlannedEvent>& planned = events_->plan().events;
  for (std::uint32_t position = 0; position < planned.size(); ++position) {
    const EventSpec& spec = planned[position].spec;
    // Counters count occurrences: they say nothing about values taken from registers or raw data.
    if (planned[position].index != event || spec.value_source != EventSpec::ValueSource::period) continue;
    const SlotRole role = mode() == PerfMode::per_task ? SlotRole::task_sampling : SlotRole::counting;
    return std::llround(static_cast<double>(events_->slots().total(position, role)) * spec.value_scale);
  }
  return std::nullopt;
}

bool PerfCollector::is_finished() {
  if (mode_.follows_everything()) return false;
  if (mode() == PerfMode::per_cpu) return mode_.have_all_ended();
  if (mode_.is_changing() || events_->slots().find_live_task_fd() >= 0) return false;
  // The last records may say that a task lives on without its events: see RecordReader::on_detached().
  if (hung_up_at_ == 0) hung_up_at_ = events_->clock().now();
  records_.forget_ended_detached();
  return !records_.has_detached() && events_->clock().now() - hung_up_at_ > 2 * kSettleTime;
}

CollectorCounters PerfCollector::counters() const {
  CollectorCounters counters = records_.counters();
  counters.wakeups = wakeups_;
  counters.malformed_records += events_->malformed();
  counters.lost_contexts = events_->lost_contexts();
  return counters;
}

std::string PerfCollector::describe() const {
  const std::string reason = mode_.reason().empty() ? "" : fmt::format(" ({})", mode_.reason());
  return fmt::format("perf events per {}{}, {} CPUs, rings of {} KiB",
                     mode() == PerfMode::per_task ? "task" : "CPU", reason, events_->rings().cpus().size(),
                     events_->rings().bytes_per_ring() / 1024);
}

std::vector<std::string> PerfCollector::notices() const {
  std::vector<std::string> all = events_->notices();
  for (std::string& notice : mode_.notices()) all.push_back(std::move(notice));
  all.insert(all.end(), records_.notices().begin(), records_.notices().end());
  return all;
}

CollectorScope PerfCollector::scope() const {
  return {.processes = mode_.tasks().processes(),
          .refused = events_->refused(),
          .kernel_need = events_->plan().kernel ? "" : kernel_frames_need(own_privileges())};
}

// Events of CPUs are opened in a fork storm, rings for deep stacks.
std::vector<NeededCall> PerfCollector::needed_calls() const {
  return {{SYS_perf_event_open}, {SYS_ioctl, _IOC_TYPE(PERF_EVENT_IOC_ENABLE)}};
}

}  // namespace ddprof
