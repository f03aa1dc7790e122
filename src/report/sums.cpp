#include "report/sums.hpp"

#include <optional>

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

}  // namespace ddprof
