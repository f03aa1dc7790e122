#pragma once

#include <string>
#include <vector>

#include "cli/annotation.hpp"
#include "cli/report.hpp"
#include "cli/report_sections.hpp"
#include "report/headline.hpp"
#include "report/view.hpp"

namespace ddprof {

// What a report has beside its view, each part only when it is asked for.
struct ReportParts {
  std::vector<Headline> headlines;
  std::vector<CallTree> calls;
  std::vector<Annotation> annotations;
};

// Whether the usual sections are wanted, rather than those that replace them.
bool is_usual(const ReportOptions& options);

// The data of a report for programs. The keys are documented in docs/report.md and stay as they are; values
// are in the profile's own unit.
std::string report_json(const ReportView& view, const ReportOptions& options, const ReportParts& parts);

}  // namespace ddprof
