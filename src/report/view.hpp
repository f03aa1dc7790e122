#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"
#include "profile/profile_view.hpp"
#include "profile/thread_table.hpp"
#include "report/filter.hpp"

namespace ddprof {

struct StackSum {
  std::int64_t self = 0;   // of the samples whose innermost id this is
  std::int64_t total = 0;  // of the samples in which it occurs; recursion counts once
};

// Sums a column over stacks, for each of `count` ids that locations stand for.
std::vector<StackSum> sum_stacks(const Profile& profile, std::span<const std::uint32_t> samples,
                                 const LocationIds& ids, std::size_t count, std::size_t column);

// One line of a table: an id and its sums.
struct SumRow {
  std::uint32_t id = 0;
  StackSum sum;
};

struct SampleTotals {
  std::int64_t value = 0;    // the sum
  std::int64_t size = 0;     // the sum of sizes: what percentages are of; more than `value` in a difference
  std::int64_t samples = 0;  // from the column that counts them; 0 when there is none
};

SampleTotals sum_samples(const Profile& profile, std::span<const std::uint32_t> samples, std::size_t column);

// The size of a value of either sign.
[[nodiscard]] constexpr std::int64_t size_of_value(std::int64_t value) {
  if (value == std::numeric_limits<std::int64_t>::min()) return std::numeric_limits<std::int64_t>::max();
  return value < 0 ? -value : value;
}

struct ValueRow {
  std::uint32_t id = 0;
  std::int64_t value = 0;
};

// What each thread and each process of the table has, greatest first; those without samples are left out.
struct ThreadSums {
  std::vector<ValueRow> threads;
  std::vector<ValueRow> processes;
};

ThreadSums sum_threads(const Profile& profile, std::span<const std::uint32_t> samples,
                       const ThreadTable& table, std::size_t column);

// What every section of a report looks at: one column of the samples that pass the filter.
struct ReportView {
  const Profile& profile;
  std::size_t column = 0;
  std::string_view type, unit;
  FrameTable frames;
  ThreadTable threads;
  SelectedSamples selected = {};
  SampleTotals whole = {}, left = {};  // before and after the filter
  ThreadSums by_thread = {};
};

// `sample_type` names the column; empty: the profile's default. The profile must outlive the view.
Result<ReportView> make_report_view(const Profile& profile, const std::string& sample_type = {},
                                    const ReportFilter& filter = {});

}  // namespace ddprof
