#include "session/timeline.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ddprof {

Timeline::Timeline(const AggregatedProfile& profile, std::optional<std::uint32_t> count_column)
    : profile_(profile), count_column_(count_column), order_(profile.moments.size()) {
  std::iota(order_.begin(), order_.end(), 0U);
  // Stable: moments of one sample stay in the order in which they came, which is that of time.
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t left, std::uint32_t right) {
    return profile.moments[left].sample < profile.moments[right].sample;
  });
  begins_.resize(profile.samples.size() + 1);
  for (const AggregatedProfile::Moment& moment : profile.moments) begins_[moment.sample + 1]++;
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
}

std::vector<TimelinePart> Timeline::parts(std::uint32_t sample, std::size_t columns) const {
  const auto whole = profile_.sample_values(sample).first(columns);
  const std::span moments = std::span(order_).subspan(begins_[sample], begins_[sample + 1] - begins_[sample]);
  const std::int64_t timed = static_cast<std::int64_t>(moments.size());
  const std::int64_t counted = count_column_ ? whole[*count_column_] : timed;
  const std::int64_t events = std::max({counted, timed, std::int64_t{1}});

  std::vector<TimelinePart> parts;
  std::vector<std::int64_t> given(columns);
  // Differences of rounded sums: the parts add up, whatever the division leaves.
  const auto add = [&](std::int64_t until, std::optional<Nanoseconds> time) {
    TimelinePart part{std::vector<std::int64_t>(columns), time};
    for (std::size_t column = 0; column < columns; ++column) {
      __extension__ using Wide = __int128;
      const auto due = static_cast<std::int64_t>(Wide{whole[column]} * until / events);
      part.values[column] = due - std::exchange(given[column], due);
    }
    parts.push_back(std::move(part));
  };
  std::int64_t until = 0;
  for (std::uint32_t moment : moments) add(++until, profile_.moments[moment].time);
  if (until < events) add(events, std::nullopt);
  return parts;
}

}  // namespace ddprof
