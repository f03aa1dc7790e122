#pragma once

#include <string>
#include <vector>

#include "cli/annotation.hpp"
#include "report/view.hpp"

namespace ddprof {

// The data of a report for programs. The keys are documented in docs/report.md and stay as they are; values
// are in the profile's own unit.
std::string report_json(const ReportView& view, const ReportOptions& options,
                        const std::vector<Annotation>& annotations);

}  // namespace ddprof
