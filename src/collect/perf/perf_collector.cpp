#include "collect/perf/perf_collector.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "collect/perf/ring_set.hpp"
#include "process/proc_files.hpp"

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

// Of one thread on one CPU, by the fastest clock. Nothing is known of events that are no clocks.
Nanoseconds time_between_samples(const EventPlan& plan) {
  Nanoseconds shortest = PendingContexts::kGreatestDistance * 4;
  for (const PlannedEvent& event : plan.events) {
    const Nanoseconds period(static_cast<std::int64_t>(event.task_attr.sample_period));
    if (event.spec.is_clock) shortest = std::min(shortest, period);
  }
  return shortest;
}

std::uint64_t samples_per_second(const EventSpec& spec) {
  constexpr std::uint64_t kGuessForCounts = 100;
  if (spec.frequency != 0) return spec.frequency;
  if (spec.is_clock && spec.period != 0) return 1'000'000'000 / spec.period;
  return kGuessForCounts;
}

RingBudget budget_for(const EventPlan& plan, std::size_t cpus) {
  constexpr std::uint64_t kBesidesStack = 2048;  // registers and a full chain of kernel frames
  RingBudgetInput input = ring_budget_of_this_machine(cpus);
  input.samples_per_second = 0;
  input.record_bytes = 0;
  for (const PlannedEvent& event : plan.events) {
    input.samples_per_second += samples_per_second(event.spec);
    input.record_bytes = std::max(input.record_bytes, event.task_attr.sample_stack_user + kBesidesStack);
  }
  return ring_budget(input);
}

}  // namespace

Result<std::uint32_t> automatic_stack_bytes(const std::vector<EventSpec>& events) {
  const std::vector<int> cpus = TRY(online_cpus());
  RingBudgetInput input = ring_budget_of_this_machine(cpus.size());
  input.samples_per_second = 0;
  for (const EventSpec& spec : events) input.samples_per_second += samples_per_second(spec);
  return automatic_stack_bytes(input);
}

Result<std::unique_ptr<PerfCollector>> PerfCollector::open(const Target& target, const PerfOptions& wanted) {
  std::vector<int> cpus = TRY(online_cpus());
  PerfOptions options = wanted;
  if (options.stack_bytes == 0) options.stack_bytes = TRY(automatic_stack_bytes(options.events));
  EventPlan plan = TRY(make_event_plan(options, target));
  PerfClock clock = TRY(PerfClock::calibrate(plan.features));
  raise_descriptor_limit(descriptors_needed(1, cpus.size(), plan.events.size()));
  RingSet rings = TRY(RingSet::open(cpus, plan.features, budget_for(plan, cpus.size())));
  // Totals are worth a little locked memory, but nothing depends on them.
  RingSet totals_rings;
  if (!target.is_host()) {
    constexpr std::size_t kTotalsPages = 64;  // four thousand ends of tasks
    auto opened = RingSet::open(cpus, plan.features, {.wanted_pages = kTotalsPages, .pages = kTotalsPages});
    if (opened.ok()) totals_rings = std::move(opened).value();
  }
  auto collector = std::make_unique<PerfCollector>(target, options, std::move(plan), std::move(rings),
                                                   std::move(totals_rings), clock);
  TRY(collector->start());
  return collector;
}

PerfCollector::PerfCollector(const Target& target, const PerfOptions& options, EventPlan plan, RingSet rings,
                             RingSet totals_rings, PerfClock clock)
    : target_(target),
      self_(Pid{::getpid()}),
      per_cpu_use_(options.per_cpu),
      plan_(std::move(plan)),
      rings_(std::move(rings)),
      totals_rings_(std::move(totals_rings)),
      clock_(clock),
      slots_(plan_.events.size(), rings_.cpus().size()),
      attacher_(plan_, rings_, totals_rings_, slots_),
      notices_(plan_.notices) {
  if (rings_.notice()) notices_.push_back(*rings_.notice());
  open_contexts();
  // Without it a successor finds the tasks by their parents.
  if (auto roster = TaskRoster::create(); roster.ok()) tasks_.share(std::move(roster).value());
}

// Without it samples have no contexts, and nothing else is different.
void PerfCollector::open_contexts() {
  auto opened = ThreadContextReader::open(rings_.cpus().size(), time_between_samples(plan_));
  if (!opened.ok()) return;
  contexts_.emplace(std::move(opened).value());
  attacher_.read_contexts_with(*contexts_);
}

Result<void> PerfCollector::take_over(int wake_fd, NoteSender sender) {
  wake_fd_ = wake_fd;
  sender_ = {};
  if (sender)
    sender_ = [sender = std::move(sender)](const EventNote& note, int fd) { sender(bytes_of(note), fd); };
  TRY(rings_.take_over());
  TRY(totals_rings_.take_over());
  slots_.report_to(sender_);
  slots_.forget_ended_tasks();
  tasks_.read_roster(mode_ == PerfMode::per_cpu);
  may_have_missed_tasks_ = true;  // by a predecessor
  if (contexts_) contexts_->clear();
  slow_down(1);  // which may have slowed events down
  return {};
}

void PerfCollector::follow(std::span<const std::byte> bytes, UniqueFd fd) {
  const auto parsed = parse_event_note(bytes);
  if (!parsed) return;
  const EventNote& note = *parsed;
  slots_.follow(note, std::move(fd));
  // What cannot have happened is not believed: the next worker would leave out all samples since a time to
  // come.
  const std::uint64_t time = std::clamp<std::uint64_t>(note.time, 1, clock_.now());
  if (note.step == EventNote::Step::paused && plan_.has_own_side_band()) paused_at_ = time;
  if (note.step == EventNote::Step::resumed) paused_at_ = 0;
  if (note.step == EventNote::Step::redirected) is_redirected_ = true;
  if (note.step != EventNote::Step::mode_changed || !plan_.per_cpu || mode_ == PerfMode::per_cpu) return;
  mode_ = PerfMode::per_cpu;
  mode_reason_ = "chosen by an earlier worker";
  changed_at_ = time;
}

void PerfCollector::reclaim() {
  // Rings of its own have gone with it. Where there were none, nothing is done: the kernel waits for an RCU
  // grace period (some 13 ms) before an event that had a ring gets another, even the same one, and there are
  // as many events as CPUs and threads.
  if (!is_redirected_) return;
  is_redirected_ = false;
  if (auto redirected = slots_.redirect(rings_); !redirected.ok())
    notices_.push_back(redirected.error().message);
}

void PerfCollector::slow_down(std::uint32_t factor) {
  for (std::uint32_t event = 0; event < plan_.events.size(); ++event) {
    const PlannedEvent& planned = plan_.events[event];
    const double period = static_cast<double>(planned.cpu_attr.sample_period) * Thinning::slowed(factor);
    if (planned.has_fixed_period()) slots_.set_period_of_cpus(event, static_cast<std::uint64_t>(period));
  }
  thinning_.set_factor(factor, clock_.now());
}

Result<void> PerfCollector::collect(std::chrono::milliseconds timeout, const EventHandler& handle) {
  if (is_finished()) timeout = std::chrono::milliseconds{0};
  if (is_changing_mode_) timeout = std::min(timeout, kChangePace);
  if (hung_up_at_ != 0) timeout = std::min(timeout, detached_.empty() ? kSettlePace : kLookPace);
  if (TRY(rings_.wait(timeout, slots_.find_live_task_fd(), wake_fd_))) ++counters_.wakeups;

  std::uint64_t now = clock_.now();
  // Whoever wants samples at once cannot wait for the order to settle; what comes late is rare and only read
  // late.
  merge_rings(rings_.is_immediate() ? now : now - kSettleTime, now - kSettleTime, now, handle);
  advance_mode();
  return {};
}

void PerfCollector::merge_rings(std::uint64_t limit, std::uint64_t totals_limit, std::uint64_t now,
                                const EventHandler& handle) {
  auto take = [&](std::span<const std::byte> bytes) { on_bytes(bytes, handle); };
  merge_.run(rings_.rings(), limit, now, take);
  totals_merge_.run(totals_rings_.rings(), totals_limit, now, take);
  if (contexts_)
    contexts_->forget_before(clock_.to_monotonic(std::min(limit, now)) - PendingContexts::kGreatestDistance);
}

void PerfCollector::deliver_at_once() {
  if (rings_.is_immediate() || has_no_room_for_more_) return;
  constexpr std::size_t kImmediatePages = 128;  // eight of the largest records: the reader is woken for each
  auto added = rings_.add_immediate(plan_.features, kImmediatePages);
  if (added.ok() && sender_) sender_({.step = EventNote::Step::redirected}, -1);
  if (added.ok()) added = slots_.redirect(rings_);
  if (added.ok()) return;
  has_no_room_for_more_ = true;
  notices_.push_back(
      fmt::format("deep stacks are completed later than they could be: {}", added.error().message));
}

Result<void> PerfCollector::drain(const EventHandler& handle) {
  for (SlotRole role : {SlotRole::task_sampling, SlotRole::cpu_sampling, SlotRole::counting})
    slots_.disable(role);
  merge_rings(RingMerge::kNoLimit, RingMerge::kNoLimit, clock_.now(), handle);
  return {};
}

std::optional<std::int64_t> PerfCollector::exact_total(std::uint32_t event) {
  if (!has_exact_total_) return std::nullopt;
  for (std::uint32_t position = 0; position < plan_.events.size(); ++position) {
    const PlannedEvent& planned = plan_.events[position];
    // Counters count occurrences: they say nothing about values taken from registers or raw data.
    if (planned.index != event || planned.spec.value_source != EventSpec::ValueSource::period) continue;
    SlotRole role = mode_ == PerfMode::per_task ? SlotRole::task_sampling : SlotRole::counting;
    return std::llround(static_cast<double>(slots_.total(position, role)) * planned.spec.value_scale);
  }
  return std::nullopt;
}

bool PerfCollector::is_finished() {
  if (follows_everything()) return false;
  if (mode_ == PerfMode::per_task) {
    if (is_changing_mode_ || slots_.find_live_task_fd() >= 0) return false;
    // The last records may tell that a task lives on without its events: see on_detached().
    if (hung_up_at_ == 0) hung_up_at_ = clock_.now();
    absl::erase_if(detached_, [](std::int32_t pid) { return !is_alive(Tid{pid}); });
    return detached_.empty() && clock_.now() - hung_up_at_ > 2 * kSettleTime;
  }
  if (awaits_exec_) return !is_alive(Tid{to_int(target_.root())});
  return tasks_.empty();
}

CollectorCounters PerfCollector::counters() const {
  CollectorCounters counters = counters_;
  counters.malformed_records += merge_.malformed() + totals_merge_.malformed();
  if (contexts_) counters.lost_contexts = contexts_->lost();
  for (const PerfRing& ring : rings_.rings()) counters.malformed_records += ring.malformed();
  return counters;
}

std::string PerfCollector::describe() const {
  std::string reason = mode_reason_.empty() ? "" : fmt::format(" ({})", mode_reason_);
  return fmt::format("perf events per {}{}, {} CPUs, rings of {} KiB",
                     mode_ == PerfMode::per_task ? "task" : "CPU", reason, rings_.cpus().size(),
                     rings_.bytes_per_ring() / 1024);
}

std::vector<std::string> PerfCollector::notices() const {
  std::vector<std::string> all = notices_;
  all.insert(all.end(), attacher_.notices().begin(), attacher_.notices().end());
  return all;
}

CollectorScope PerfCollector::scope() const {
  return {.processes = tasks_.processes(),
          .refused = attacher_.refused(),
          .kernel_need = plan_.kernel ? "" : kernel_frames_need(own_privileges())};
}

// Events of CPUs are opened in a fork storm, rings for deep stacks.
std::vector<NeededCall> PerfCollector::needed_calls() const {
  return {{SYS_perf_event_open}, {SYS_ioctl, _IOC_TYPE(PERF_EVENT_IOC_ENABLE)}};
}

}  // namespace ddprof
