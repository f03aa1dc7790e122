#pragma once

#include <cstdint>
#include <vector>

#include "report/sums.hpp"
#include "report/view.hpp"

namespace ddprof {

// The functions of a report; ids are frames. Markers are not code and have a table of their own.
struct FunctionTables {
  std::vector<SumRow> by_self;   // then by total, then by name
  std::vector<SumRow> by_total;  // then by self, then by name
  std::vector<SumRow> missed;    // markers, by total
};

FunctionTables function_tables(const ReportView& view);

}  // namespace ddprof
