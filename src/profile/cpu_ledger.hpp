#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/frame.hpp"
#include "profile/aggregator.hpp"

namespace ddprof {

// Adds the estimates of column `estimate` to column `exact`, scaled so that they sum up to `total` to the
// nanosecond. Per-CPU sampling sees every task in proportion to its time (an unbiased estimate), while the
// sum is known exactly: the ratio estimator keeps the shares and takes the noise out of the sum.
void fold_estimates(AggregatedProfile& profile, std::uint32_t estimate, std::uint32_t exact,
                    std::int64_t total);

// Scales one column so that it sums up to `total` to the nanosecond, keeping its shares.
void scale_column(AggregatedProfile& profile, std::uint32_t column, std::int64_t total);

// The sum of one column.
std::int64_t column_sum(const AggregatedProfile& profile, std::uint32_t column);

// Makes a CPU profile add up. A sample stands for one period of CPU time, but a task that ends within its
// first period is never sampled, nor is the rest of any task's last period; rings overflow; and without
// privilege time in the kernel gives no samples. The kernel knows the exact time of each task all the same.
// The ledger keeps both sides and says, when a period closes, which time no sample stands for, by thread and
// by cause.
//
// Maths (docs/sampling.md): for a thread with exact time T and n samples of period P, T - nP is in [0, P)
// plus what was lost. While the thread lives, up to P of it is only not sampled *yet* and waits for the next
// period. Sibling threads that follow each other on a CPU swap their perf contexts, timers included, so a
// sample may be charged to the next thread: T - nP can be negative for one and too large for the other. What
// one has too much, another has too little; the entries balance it, so that their sum never exceeds the exact
// total.
class CpuLedger {
 public:
  struct Entry {
    ThreadKey thread;
    Loss loss = Loss::none;
    std::int64_t value = 0;
  };
  struct ThreadTotal {
    ThreadKey thread;
    std::int64_t total = 0;
  };

  // `period` is what a sample stands for; `samples_kernel` false: ticks in the kernel give no sample.
  CpuLedger(std::int64_t period, bool samples_kernel) : period_(period), samples_kernel_(samples_kernel) {}

  void add_sample(ThreadKey thread, std::int64_t value);
  // The exact time of a task that has ended; several parts (one per CPU) add up.
  void add_task_total(ThreadKey thread, std::int64_t value);
  // The thread lives on, but the kernel neither samples nor counts it any more.
  void add_detached(ThreadKey thread) {
    accounts_[key_of(thread)].is_detached = true;
    last_detached_ = thread;
  }
  [[nodiscard]] bool has_detached() const { return last_detached_.has_value(); }
  // Records that the kernel could not write; some may have been samples.
  void add_lost(std::uint64_t records) { lost_budget_ += static_cast<std::int64_t>(records) * period_; }
  // Goes on for a ledger that is gone: so much was explained, and of the rest up to `untold`, by the end of
  // this period, was known to it.
  void resume(std::int64_t explained, std::int64_t untold) {
    explained_ = explained;
    untold_budget_ = untold;
  }
  // So much of what samples stood for was not charged after all, and is not in the profile either.
  void take_back(std::int64_t value) { explained_ -= value; }
  // From now on a sample stands for this much.
  void set_period(std::int64_t period) { period_ = period; }
  void add_throttled(std::int64_t value) { throttled_budget_ += value; }

  // Closing a period, first part: what is missing of tasks that have ended. `exact_total` is the sum over all
  // tasks since the beginning.
  std::vector<Entry> close_ended(std::int64_t exact_total);
  // Second part. `living` are exact totals of living threads where known. What belongs to no known thread
  // goes to `rest`, the thread that was followed first. When `is_final`, nothing waits for a next period.
  std::vector<Entry> close_living(std::int64_t exact_total, std::span<const ThreadTotal> living,
                                  ThreadKey rest, bool is_final);

  // Samples and entries so far.
  [[nodiscard]] std::int64_t explained() const { return explained_; }
  // Time that is neither sampled nor reported nor merely waiting for its sample.
  [[nodiscard]] std::int64_t unexplained(std::int64_t exact_total) const {
    return exact_total - explained_ - period_ * static_cast<std::int64_t>(accounts_.size() + 1);
  }

 private:
  struct Account {
    std::int64_t sampled = 0;
    std::int64_t total = 0;     // exact, once the task has ended
    std::int64_t reported = 0;  // by earlier entries
    bool has_ended = false;
    bool is_detached = false;
  };

  static std::uint64_t key_of(ThreadKey thread);
  // `rest_is` is what explains the time that nothing else does, where it is known.
  void settle(ThreadKey thread, std::int64_t missing, std::int64_t exact_total, std::vector<Entry>& entries,
              Loss rest_is = Loss::none);
  void take(ThreadKey thread, Loss loss, std::int64_t value, std::vector<Entry>& entries);

  std::int64_t period_;
  bool samples_kernel_;
  std::int64_t explained_ = 0;
  std::int64_t surplus_ = 0;      // samples of ended threads beyond their exact time
  std::int64_t lost_budget_ = 0;  // time that lost records could stand for, and that no entry has named yet
  std::int64_t throttled_budget_ = 0;
  std::int64_t untold_budget_ = 0;
  std::optional<ThreadKey> last_detached_;
  absl::flat_hash_map<std::uint64_t, Account> accounts_;
};

}  // namespace ddprof
