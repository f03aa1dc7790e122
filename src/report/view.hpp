#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/profile_view.hpp"
#include "profile/thread_table.hpp"
#include "report/filter.hpp"
#include "report/sums.hpp"
#include "report/threads.hpp"

namespace ddprof {

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
