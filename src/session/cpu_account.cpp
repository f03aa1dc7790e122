#include "session/cpu_account.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "profile/cpu_ledger.hpp"
#include "session/kernel_times.hpp"

namespace ddprof {

using namespace std::chrono_literals;

CpuAccount::CpuAccount(const Clocked& clocked, const CpuAccountOptions& options, Collector& collector,
                       const ProcessTable& processes)
    : clocked_(clocked),
      options_(options),
      collector_(collector),
      processes_(processes),
      ledger_(clocked.period, collector.scope().samples_kernel()) {
  if (options_.has_pauses) options_.charged.ask = nullptr;
}

void CpuAccount::start(std::span<const Pid> first, Nanoseconds now) {
  started_ = now;
  stolen_before_ = stolen_time();
  for (const Pid pid : first) thread_times_.start_from(pid);
}

void CpuAccount::resume(const SessionHandover& handover, Nanoseconds now) {
  started_ = now;
  stolen_before_ = handover.stolen_before;
  has_children_ = handover.has_children;
  estimated_before_ = handover.told_by_estimates;
  accounted_ = handover.accounted;
  totals_.sampled = handover.sampled;
  for (std::size_t loss = 0; loss < kLosses; ++loss) {
    if (handover.losses[loss] != 0) totals_.losses[static_cast<Loss>(loss)] = handover.losses[loss];
  }
  const std::int64_t told = handover.told_by_samples + handover.told_by_estimates;
  const std::int64_t untold = collector_.exact_total(clocked_.event).value_or(told) - told;
  ledger_.resume(handover.told_by_samples, std::max<std::int64_t>(0, untold));
  thread_times_.start_late();
}

void CpuAccount::hand_over(SessionHandover& handover) const {
  handover.stolen_before = stolen_before_;
  handover.has_children = has_children_;
  handover.told_by_samples = ledger_.explained() - ticks_;
  handover.told_by_estimates = estimated_before_;
  handover.accounted = accounted_;
  handover.sampled = totals_.sampled;
  for (const auto& [loss, value] : totals_.losses) handover.losses[static_cast<std::size_t>(loss)] = value;
}

void CpuAccount::slow_down(std::uint32_t factor) { ledger_.set_period(clocked_.period * factor); }

void CpuAccount::add(const SampleEvent& sample) {
  if (sample.event != clocked_.event) return;
  switch (sample.basis) {
    case SampleBasis::own_period:
      totals_.sampled += sample.value;
      return ledger_.add_sample({sample.pid, sample.tid}, sample.value);
    case SampleBasis::cpu_period:
      totals_.sampled += sample.value;
      estimated_ += sample.value;
      return;
    case SampleBasis::ticks:
      has_tick_samples_ = true;
  }
}

void CpuAccount::add(const TickEvent& event) {
  if (event.event != clocked_.event) return;
  totals_.sampled += event.value;
  ledger_.add_sample({event.pid, event.tid}, event.value);
  ticks_ += event.value;
}

void CpuAccount::add(const TaskTotalEvent& event) {
  if (event.event == clocked_.event && thread_times_.knows_beginning(event.tid))
    ledger_.add_task_total({event.pid, event.tid}, event.value);
  thread_times_.end(event.tid);
}

void CpuAccount::add(const ThrottleEvent& event) {
  if (event.is_start) throttled_since_ = event.time;
  if (!event.is_start) ledger_.add_throttled((event.time - throttled_since_).count());
}

void CpuAccount::refresh_charge(Nanoseconds now) {
  if (!options_.charged.ask || options_.charged.is_exact || now < next_charge_) return;
  next_charge_ = now + std::max<Nanoseconds>(1s, (now - started_) / 8);
  if (auto counted = collector_.exact_total(clocked_.event)) options_.charged.ask(*counted, false);
}

void CpuAccount::find_exact_total(bool is_final) {
  totals_.exact = collector_.exact_total(clocked_.event);
  if (!totals_.exact || !options_.charged.ask) return;
  // Counters do not see the very start and end of a task, and count what a hypervisor or an interrupt stole;
  // what was charged is the truth, if none is missing in it: children that live, or were not waited for.
  const std::int64_t counted = *totals_.exact;
  const std::int64_t charged = options_.charged.ask(counted, is_final);
  const std::int64_t deficit = counted - charged;
  constexpr std::int64_t kNoise = 200;  // half a percent
  const bool may_lack_children = has_children_ && deficit > counted / kNoise;
  const bool is_plausible = deficit < counted / 4;
  if ((is_plausible && !may_lack_children) || deficit <= stolen_time() - stolen_before_)
    totals_.exact = charged;
}

void CpuAccount::add_entries(const std::vector<CpuLedger::Entry>& entries, Aggregator& aggregator) {
  for (const CpuLedger::Entry& entry : entries) {
    Frame frame{.kind = FrameKind::accounted, .loss = entry.loss};
    ThreadKey thread{entry.thread.pid, entry.thread.tid, processes_.incarnation_of(entry.thread.pid)};
    aggregator.add(thread, {&frame, 1}, {{clocked_.column, entry.value}});
    totals_.losses[entry.loss] += entry.value;
  }
}

// Returns what the estimates of per-CPU sampling are to sum up to.
std::int64_t CpuAccount::add_unsampled_time(Aggregator& aggregator, bool is_final) {
  std::int64_t told_by_tasks = *totals_.exact - estimated_before_;
  add_entries(ledger_.close_ended(told_by_tasks), aggregator);
  // A ratio far above one is no sampling noise: then the rest is shown as what it is, unsampled.
  std::int64_t left = std::max<std::int64_t>(0, told_by_tasks - ledger_.explained());
  std::int64_t estimate = std::min(left, estimated_ + estimated_ / 2);
  told_by_tasks -= estimate;
  std::vector<CpuLedger::ThreadTotal> living;
  bool needs_living = is_final || ledger_.unexplained(told_by_tasks) > 0;
  // What /proc says of a thread includes the pauses: then the rest is told by process.
  if (needs_living && estimated_ == 0 && !options_.has_pauses) living = thread_times_.read(processes_);
  const Pid root = options_.root;
  ThreadKey rest{root, static_cast<Tid>(to_int(root))};
  add_entries(ledger_.close_living(told_by_tasks, living, rest, is_final), aggregator);
  estimated_before_ += estimate;
  return estimate;
}

// What the samples of ticks are to sum up to. Without one the ticks wait for the next period.
std::int64_t CpuAccount::take_ticks(Aggregator& aggregator, bool is_final) {
  if (!has_tick_samples_ && !is_final) return 0;
  const std::int64_t ticks = std::exchange(ticks_, 0);
  if (std::exchange(has_tick_samples_, false)) return ticks;
  const ThreadKey rest{options_.root, Tid{to_int(options_.root)}};
  if (ticks > 0) add_entries({{rest, Loss::unsampled, ticks}}, aggregator);
  totals_.sampled -= ticks;
  return 0;
}

// Timers run on while a hypervisor has taken the CPU away, so samples can stand for more time than was
// charged. Shares stay what they are; the sum is what the kernel says.
void CpuAccount::take_back_excess(AggregatedProfile& profile) {
  std::int64_t sum = column_sum(profile, clocked_.column);
  if (totals_.exact) {
    std::int64_t charged = *totals_.exact - accounted_;
    constexpr std::int64_t kTolerance = 200;  // half a percent is the noise of the last period
    if (charged > 0 && sum > charged + charged / kTolerance) {
      scale_column(profile, clocked_.column, charged);
      ledger_.take_back(sum - charged);
      sum = charged;
    }
  }
  accounted_ += sum;
}

AggregatedProfile CpuAccount::close(Aggregator& aggregator, Nanoseconds begin, Nanoseconds end,
                                    bool is_final) {
  find_exact_total(is_final);
  std::int64_t estimate = totals_.exact ? add_unsampled_time(aggregator, is_final) : estimated_;
  estimate += take_ticks(aggregator, is_final);
  AggregatedProfile profile = aggregator.take(begin, end);
  fold_estimates(profile, clocked_.estimate_column, clocked_.column, estimate);
  take_back_excess(profile);
  thread_times_.forget_ended();
  estimated_ = 0;
  return profile;
}

}  // namespace ddprof
