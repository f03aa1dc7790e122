#include "report/view.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "profile/profile_view.hpp"

namespace ddprof {

namespace {

// What one pass writes to, together in a cache line.
struct RunningSum {
  StackSum sum;
  std::uint64_t last_seen = 0;
};

}  // namespace

std::vector<StackSum> sum_stacks(const Profile& profile, std::span<const std::uint32_t> samples,
                                 const LocationIds& ids, std::size_t count, std::size_t column) {
  std::vector<RunningSum> running(count);
  std::uint64_t turn = 0;
  for (std::uint32_t at : samples) {
    const ProfileSample& sample = profile.samples[at];
    const std::int64_t value = sample.values[column];
    if (value == 0) continue;
    ++turn;
    if (!sample.locations.empty()) {
      const auto leaf = ids.of(sample.locations.front());
      if (!leaf.empty()) {
        std::int64_t& self = running[leaf.front()].sum.self;
        self = saturating_add(self, value);
      }
    }
    for (std::uint32_t location : sample.locations) {
      for (std::uint32_t id : ids.of(location)) {
        RunningSum& entry = running[id];
        if (entry.last_seen == turn) continue;
        entry.last_seen = turn;
        entry.sum.total = saturating_add(entry.sum.total, value);
      }
    }
  }
  std::vector<StackSum> sums;
  sums.reserve(count);
  for (const RunningSum& entry : running) sums.push_back(entry.sum);
  return sums;
}

SampleTotals sum_samples(const Profile& profile, std::span<const std::uint32_t> samples, std::size_t column) {
  SampleTotals totals;
  const std::optional<std::size_t> counts = samples_column(profile);
  for (std::uint32_t at : samples) {
    const ProfileSample& sample = profile.samples[at];
    const std::int64_t value = sample.values[column];
    totals.value = saturating_add(totals.value, value);
    totals.size = saturating_add(totals.size, size_of_value(value));
    if (counts) totals.samples = saturating_add(totals.samples, sample.values[*counts]);
  }
  return totals;
}

namespace {

struct SeenSum {
  std::int64_t value = 0;
  bool is_seen = false;

  void add(std::int64_t more) {
    value = saturating_add(value, more);
    is_seen = true;
  }
};

std::vector<ValueRow> sorted_rows(const std::vector<SeenSum>& sums) {
  std::vector<ValueRow> rows;
  for (std::uint32_t id = 0; id < sums.size(); ++id) {
    if (sums[id].is_seen) rows.push_back({id, sums[id].value});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ValueRow& left, const ValueRow& right) {
    return size_of_value(left.value) > size_of_value(right.value);
  });
  return rows;
}

}  // namespace

ThreadSums sum_threads(const Profile& profile, std::span<const std::uint32_t> samples,
                       const ThreadTable& table, std::size_t column) {
  std::vector<SeenSum> threads(table.threads().size()), processes(table.processes().size());
  for (std::uint32_t sample : samples) {
    const std::int64_t value = profile.samples[sample].values[column];
    if (value != 0) threads[table.of(sample)].add(value);  // others are of another kind
  }
  for (std::size_t thread = 0; thread < threads.size(); ++thread) {
    if (threads[thread].is_seen) processes[table.threads()[thread].process].add(threads[thread].value);
  }
  return {sorted_rows(threads), sorted_rows(processes)};
}

namespace {

Result<std::size_t> choose_column(const Profile& profile, const std::string& wanted) {
  const std::optional<std::size_t> column =
      wanted.empty() ? default_column(profile) : find_column(profile, wanted);
  if (column) return *column;
  if (profile.value_types.empty()) return make_error(ErrorCode::not_found, "the profile has no values");
  std::vector<std::string_view> types;
  for (const ValueType& type : profile.value_types) types.push_back(profile.text(type.type));
  return make_error(ErrorCode::not_found, "--sample-type {}: not in this profile, which has {}", wanted,
                    fmt::join(types, ", "));
}

}  // namespace

Result<ReportView> make_report_view(const Profile& profile, const std::string& sample_type,
                                    const ReportFilter& filter) {
  const std::size_t column = TRY(choose_column(profile, sample_type));
  const ValueType& type = profile.value_types[column];
  ReportView view{.profile = profile,
                  .column = column,
                  .type = profile.text(type.type),
                  .unit = profile.text(type.unit),
                  .frames = FrameTable(profile),
                  .threads = ThreadTable(profile)};
  view.selected = TRY(select_samples(profile, view.frames, view.threads, filter));
  view.left = sum_samples(profile, view.selected.samples, column);
  view.by_thread = sum_threads(profile, view.selected.samples, view.threads, column);
  view.whole = view.left;
  if (view.selected.samples.size() != profile.samples.size()) {
    std::vector<std::uint32_t> all(profile.samples.size());
    std::iota(all.begin(), all.end(), 0U);
    view.whole = sum_samples(profile, all, column);
  }
  return view;
}

}  // namespace ddprof
