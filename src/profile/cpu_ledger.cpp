#include "profile/cpu_ledger.hpp"

#include <algorithm>
#include <utility>

namespace ddprof {

std::int64_t column_sum(const AggregatedProfile& profile, std::uint32_t column) {
  std::int64_t sum = 0;
  for (std::size_t i = column; i < profile.values.size(); i += profile.columns.size())
    sum += profile.values[i];
  return sum;
}

namespace {

// Replaces the values of column `from` by what `total` gives them in proportion, added to column `to`.
// Rounding prefix sums instead of values makes the parts add up to the whole.
void distribute(AggregatedProfile& profile, std::uint32_t from, std::uint32_t to, std::int64_t total) {
  const std::int64_t sum = column_sum(profile, from);
  if (sum <= 0 || total < 0) return;
  std::int64_t seen = 0;
  std::int64_t given = 0;
  for (std::size_t row = 0; row < profile.values.size(); row += profile.columns.size()) {
    seen += std::exchange(profile.values[row + from], 0);
    __extension__ using Wide = __int128;
    auto due = static_cast<std::int64_t>(Wide{seen} * total / sum);
    profile.values[row + to] += due - given;
    given = due;
  }
}

}  // namespace

void fold_estimates(AggregatedProfile& profile, std::uint32_t estimate, std::uint32_t exact,
                    std::int64_t total) {
  distribute(profile, estimate, exact, total);
}

void scale_column(AggregatedProfile& profile, std::uint32_t column, std::int64_t total) {
  distribute(profile, column, column, total);
}

std::uint64_t CpuLedger::key_of(ThreadKey thread) {
  return std::uint64_t{static_cast<std::uint32_t>(to_int(thread.pid))} << 32U |
         static_cast<std::uint32_t>(to_int(thread.tid));
}

void CpuLedger::add_sample(ThreadKey thread, std::int64_t value) {
  accounts_[key_of(thread)].sampled += value;
  explained_ += value;
}

void CpuLedger::add_task_total(ThreadKey thread, std::int64_t value) {
  Account& account = accounts_[key_of(thread)];
  if (account.is_detached) return;  // what was counted until then
  account.total += value;
  account.has_ended = true;
}

void CpuLedger::take(ThreadKey thread, Loss loss, std::int64_t value, std::vector<Entry>& entries) {
  if (value <= 0) return;
  entries.push_back({thread, loss, value});
  explained_ += value;
}

// Names `missing` time of one thread. Lost and throttled samples are known by number, not by thread, so they
// explain what exceeds the tail that every thread has; then, without privilege, it was the kernel; else
// sampling came late.
void CpuLedger::settle(ThreadKey thread, std::int64_t missing, std::int64_t exact_total,
                       std::vector<Entry>& entries, Loss rest_is) {
  std::int64_t balanced = std::min(surplus_, std::max<std::int64_t>(0, missing));
  surplus_ -= balanced;
  missing = std::min(missing - balanced, exact_total - explained_);
  if (missing <= 0) return;
  std::int64_t excess = std::max<std::int64_t>(0, missing - period_);
  std::int64_t untold = std::min(excess, untold_budget_);
  untold_budget_ -= untold;
  excess -= untold;
  std::int64_t lost = std::min(excess, lost_budget_);
  lost_budget_ -= lost;
  std::int64_t throttled = std::min(excess - lost, throttled_budget_);
  throttled_budget_ -= throttled;
  std::int64_t rest = missing - untold - lost - throttled;
  take(thread, Loss::worker, untold, entries);
  take(thread, Loss::lost, lost, entries);
  take(thread, Loss::throttled, throttled, entries);
  bool is_kernel_time = !samples_kernel_ && rest >= period_;
  if (rest_is == Loss::none || rest < period_) rest_is = is_kernel_time ? Loss::kernel : Loss::unsampled;
  take(thread, rest_is, rest, entries);
}

std::vector<CpuLedger::Entry> CpuLedger::close_ended(std::int64_t exact_total) {
  std::vector<ThreadTotal> missing;
  absl::erase_if(accounts_, [&](const auto& entry) {
    const auto& [key, account] = entry;
    if (!account.has_ended) return false;
    std::int64_t difference = account.total - account.sampled - account.reported;
    if (difference < 0) surplus_ -= difference;
    if (difference > 0)
      missing.push_back({{static_cast<Pid>(key >> 32U), static_cast<Tid>(key & 0xffffffffU)}, difference});
    return true;
  });
  // Who is first gets what is left over: the same one each time, and not by the order of a hash table.
  std::sort(missing.begin(), missing.end(), [](const ThreadTotal& left, const ThreadTotal& right) {
    return key_of(left.thread) < key_of(right.thread);
  });
  std::vector<Entry> entries;
  for (const ThreadTotal& thread : missing) settle(thread.thread, thread.total, exact_total, entries);
  return entries;
}

std::vector<CpuLedger::Entry> CpuLedger::close_living(std::int64_t exact_total,
                                                      std::span<const ThreadTotal> living, ThreadKey rest,
                                                      bool is_final) {
  std::vector<Entry> entries;
  for (const ThreadTotal& thread : living) {
    Account& account = accounts_[key_of(thread.thread)];
    std::int64_t missing = thread.total - account.sampled - account.reported;
    if (!is_final) missing -= period_;  // not sampled yet
    if (missing <= 0) continue;
    account.reported += missing;
    settle(thread.thread, missing, exact_total, entries, account.is_detached ? Loss::other_user : Loss::none);
  }
  // Of detached threads that have ended since the kernel tells nothing, but that their parents waited for
  // them.
  settle(last_detached_.value_or(rest), is_final ? exact_total - explained_ : unexplained(exact_total),
         exact_total, entries, last_detached_ ? Loss::other_user : Loss::none);
  untold_budget_ = 0;
  return entries;
}

}  // namespace ddprof
