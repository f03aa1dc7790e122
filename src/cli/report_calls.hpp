#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/report_page.hpp"
#include "report/hot_paths.hpp"
#include "report/sums.hpp"
#include "report/view.hpp"

namespace ddprof {

// What calls one function, or what it calls.
struct CallTree {
  SumRow function;
  PathDirection direction = PathDirection::callers;
  std::vector<PathLine> paths;  // the function itself is their root
};

// --callers and --callees; one tree for each function of the name, see find_functions.
Result<std::vector<CallTree>> call_trees(const ReportView& view, const std::string& name,
                                         PathDirection direction);

void write_call_tree(ReportPage& page, const ReportView& view, const CallTree& tree, std::size_t most_lines);

}  // namespace ddprof
