#include "report/threads.hpp"

#include <algorithm>

#include "profile/profile_view.hpp"
#include "report/sums.hpp"

namespace ddprof {

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
  for (std::uint32_t sample : samples) threads[table.of(sample)].add(profile.samples[sample].values[column]);
  for (std::size_t thread = 0; thread < threads.size(); ++thread) {
    if (threads[thread].is_seen) processes[table.threads()[thread].process].add(threads[thread].value);
  }
  return {sorted_rows(threads), sorted_rows(processes)};
}

}  // namespace ddprof
