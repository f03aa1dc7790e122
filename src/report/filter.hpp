#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "profile/profile_view.hpp"
#include "profile/thread_table.hpp"

namespace ddprof {

// Which samples to look at. Empty: all of them.
struct ReportFilter {
  std::vector<std::string> focus = {};   // regular expressions: each must match a frame of the stack
  std::vector<std::string> ignore = {};  // one that matches a frame drops the sample
  std::string thread = {};               // a name or an id
  std::string process = {};
  std::vector<std::string> labels = {};  // KEY=VALUE, all of them
  std::string module = {};               // a file: the samples that were taken in its code
};

struct SelectedSamples {
  std::vector<std::uint32_t> samples;     // indices, ascending
  std::vector<std::string> descriptions;  // "thread worker (12)", "stacks with malloc"; empty: not filtered
};

// The samples that pass the filter. Fails on a bad expression and on a thread, process or module that is not
// there; a stack that nothing matches is no failure.
Result<SelectedSamples> select_samples(const Profile& profile, const FrameTable& table,
                                       const ThreadTable& threads, const ReportFilter& filter);

}  // namespace ddprof
