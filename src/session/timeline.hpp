#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "profile/aggregator.hpp"

namespace ddprof {

// One event of an aggregated sample, or what is left of it.
struct TimelinePart {
  std::vector<std::int64_t> values;
  std::optional<Nanoseconds> time;  // none: of those that have no time of their own
};

// Cuts aggregated samples into the events that they were made of, so that the parts add up to the whole.
class Timeline {
 public:
  // `count_column` is the column that counts events, where there is one. `profile` must outlive this.
  Timeline(const AggregatedProfile& profile, std::optional<std::uint32_t> count_column);

  // In the order of time, the part without a time last. One part when the sample has no moments.
  [[nodiscard]] std::vector<TimelinePart> parts(std::uint32_t sample, std::size_t columns) const;

 private:
  const AggregatedProfile& profile_;
  std::optional<std::uint32_t> count_column_;
  std::vector<std::uint32_t> order_;   // of profile_.moments, by sample
  std::vector<std::uint32_t> begins_;  // by sample, into order_
};

}  // namespace ddprof
