#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.hpp"
#include "cli/report.hpp"
#include "cli/report_filter.hpp"
#include "cli/report_sums.hpp"
#include "cli/report_threads.hpp"
#include "profile/profile_view.hpp"
#include "profile/thread_table.hpp"

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

// The profile must outlive the view.
Result<ReportView> make_report_view(const Profile& profile, const ReportOptions& options);

}  // namespace ddprof
