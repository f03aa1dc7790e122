#include "collect/perf/perf_events.hpp"

#include <algorithm>

#include "collect/perf/sample_event.hpp"

namespace ddprof {

namespace {

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

Result<std::unique_ptr<PerfEvents>> PerfEvents::open(const Target& target, const PerfOptions& wanted) {
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
    constexpr std::size_t kTotalsPages = 64;    // four thousand ends of tasks
    constexpr std::size_t kSomeEnds = 16 * 64;  // bytes
    auto opened =
        RingSet::open(cpus, plan.features,
                      {.wanted_pages = kTotalsPages, .pages = kTotalsPages, .watermark_bytes = kSomeEnds});
    if (opened.ok()) totals_rings = std::move(opened).value();
  }
  return std::make_unique<PerfEvents>(std::move(plan), std::move(rings), std::move(totals_rings), clock);
}

PerfEvents::PerfEvents(EventPlan plan, RingSet rings, RingSet totals_rings, PerfClock clock)
    : plan_(std::move(plan)),
      rings_(std::move(rings)),
      totals_rings_(std::move(totals_rings)),
      clock_(clock),
      slots_(plan_.events.size(), rings_.cpus().size()),
      attacher_(plan_, rings_, totals_rings_, slots_),
      notices_(plan_.notices) {
  if (rings_.notice()) notices_.push_back(*rings_.notice());
  open_contexts();
}

// Without it samples have no contexts, and nothing else is different.
void PerfEvents::open_contexts() {
  auto opened = ThreadContextReader::open(rings_.cpus().size(), time_between_samples(plan_));
  if (!opened.ok()) return;
  contexts_.emplace(std::move(opened).value());
  attacher_.read_contexts_with(*contexts_);
}

Result<bool> PerfEvents::wait(std::chrono::milliseconds timeout, int wake_fd) {
  // A caller that waits for long expects nothing. Tasks that are too short for a sample begin and end below
  // the watermark of the large rings, but their ends show in the small ones.
  constexpr std::chrono::milliseconds kLong{100};
  constexpr std::chrono::milliseconds kLongestWithoutEnds{1000};
  if (totals_rings_.rings().empty()) timeout = std::min(timeout, kLongestWithoutEnds);
  return rings_.wait(timeout, slots_.find_live_task_fd(), wake_fd,
                     timeout > kLong ? &totals_rings_ : nullptr);
}

std::vector<std::string> PerfEvents::notices() const {
  std::vector<std::string> all = notices_;
  all.insert(all.end(), attacher_.notices().begin(), attacher_.notices().end());
  return all;
}

std::uint64_t PerfEvents::malformed() const {
  std::uint64_t count = merge_.malformed() + totals_merge_.malformed();
  for (const PerfRing& ring : rings_.rings()) count += ring.malformed();
  return count;
}

Result<void> PerfEvents::pause() {
  if (!plan_.has_own_side_band())
    return make_error(ErrorCode::unsupported, "pause: tasks would not be followed meanwhile");
  if (is_paused()) return {};
  disable_sampling();
  paused_at_ = clock_.now();
  report({.step = EventNote::Step::paused, .time = paused_at_});
  return {};
}

// A task that is being forked by one that inherited its events may have copied them while they were on, and
// show up among their copies a moment later (inherit_event() of Linux 6.1): hence twice.
void PerfEvents::disable_sampling() {
  for (int pass = 0; pass < 2; ++pass) slots_.disable_all_but(kSideBandPosition);
}

Result<void> PerfEvents::resume() {
  if (!is_paused()) return {};
  for (int pass = 0; pass < 2; ++pass) TRY(slots_.enable_all_but(kSideBandPosition));
  paused_at_ = 0;
  report({.step = EventNote::Step::resumed});
  return {};
}

void PerfEvents::slow_down(std::uint32_t factor) {
  for (std::uint32_t event = 0; event < plan_.events.size(); ++event) {
    const PlannedEvent& planned = plan_.events[event];
    const double period = static_cast<double>(planned.cpu_attr.sample_period) * Thinning::slowed(factor);
    if (planned.has_fixed_period()) slots_.set_period_of_cpus(event, static_cast<std::uint64_t>(period));
  }
}

void PerfEvents::deliver_at_once() {
  if (rings_.is_immediate() || has_no_room_for_more_) return;
  auto added = rings_.add_immediate(plan_.features);
  if (added.ok()) {
    report({.step = EventNote::Step::redirected});
    added = slots_.redirect(rings_);
  }
  if (added.ok()) return;
  has_no_room_for_more_ = true;
  notices_.push_back(
      fmt::format("deep stacks are completed later than they could be: {}", added.error().message));
}

Result<void> PerfEvents::take_over(EventNoteSender sender) {
  sender_ = std::move(sender);
  TRY(rings_.take_over());
  TRY(totals_rings_.take_over());
  slots_.report_to(sender_);
  slots_.forget_ended_tasks();
  if (contexts_) contexts_->clear();
  return {};
}

void PerfEvents::follow(EventNote& note, UniqueFd fd) {
  slots_.follow(note, std::move(fd));
  // What cannot have happened is not believed: the next worker would leave out all samples since a time to
  // come.
  note.time = std::clamp<std::uint64_t>(note.time, 1, clock_.now());
  if (note.step == EventNote::Step::paused && plan_.has_own_side_band()) paused_at_ = note.time;
  if (note.step == EventNote::Step::resumed) paused_at_ = 0;
  if (note.step == EventNote::Step::redirected) is_redirected_ = true;
}

void PerfEvents::reclaim() {
  // Rings of its own have gone with it. Where there were none, nothing is done: the kernel waits for an RCU
  // grace period (some 13 ms) before an event that had a ring gets another, even the same one, and there are
  // as many events as CPUs and threads.
  if (!is_redirected_) return;
  is_redirected_ = false;
  if (auto redirected = slots_.redirect(rings_); !redirected.ok())
    notices_.push_back(redirected.error().message);
}

}  // namespace ddprof
