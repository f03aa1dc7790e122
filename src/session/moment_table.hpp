#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "profile/aggregator.hpp"

namespace ddprof {

// The moments of an aggregated profile, sorted by sample.
class MomentTable {
 public:
  explicit MomentTable(const AggregatedProfile& profile);

  // In the order in which they came, which is that of time.
  [[nodiscard]] std::span<const Nanoseconds> times(std::uint32_t sample) const {
    return std::span(times_).subspan(begins_[sample], begins_[sample + 1] - begins_[sample]);
  }

 private:
  std::vector<Nanoseconds> times_;
  std::vector<std::uint32_t> begins_;  // by sample, into times_
};

}  // namespace ddprof
