#include "session/moment_table.hpp"

#include <numeric>

namespace ddprof {

MomentTable::MomentTable(const AggregatedProfile& profile)
    : times_(profile.moments.size()), begins_(profile.samples.size() + 1) {
  for (const AggregatedProfile::Moment& moment : profile.moments) begins_[moment.sample + 1]++;
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<std::uint32_t> next = begins_;
  for (const AggregatedProfile::Moment& moment : profile.moments) times_[next[moment.sample]++] = moment.time;
}

}  // namespace ddprof
