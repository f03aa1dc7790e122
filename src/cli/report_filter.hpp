#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/report.hpp"
#include "profile/profile_view.hpp"
#include "profile/thread_table.hpp"

namespace ddprof {

struct SelectedSamples {
  std::vector<std::uint32_t> samples;     // indices, ascending
  std::vector<std::string> descriptions;  // "thread worker (12)", "stacks with malloc"; empty: not filtered
};

// The samples that pass the filter. Fails on a bad expression and on a thread or process that is not there; a
// stack that nothing matches is no failure.
Result<SelectedSamples> select_samples(const Profile& profile, const FrameTable& table,
                                       const ThreadTable& threads, const ReportFilter& filter);

}  // namespace ddprof
