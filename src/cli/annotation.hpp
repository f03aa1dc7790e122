#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/listing.hpp"
#include "cli/report_page.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

namespace ddprof {

// One function, line by line and instruction by instruction.
struct Annotation {
  SumRow function;
  std::vector<Listing> source;
  std::vector<Listing> code;
};

// One per function of the name; see find_functions.
Result<std::vector<Annotation>> annotate(const ReportView& view, const std::string& name,
                                         const std::string& source_dir);

void write_annotation(ReportPage& page, const ReportView& view, const Annotation& annotation);

}  // namespace ddprof
