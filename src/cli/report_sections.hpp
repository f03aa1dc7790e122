#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/report_page.hpp"
#include "report/hot_paths.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

namespace ddprof {

// How much of each part is shown: one screen, or as many rows as were asked for.
struct ReportScale {
  std::size_t rows = 8;     // of a table of functions
  std::size_t paths = 12;   // lines of the tree
  std::size_t threads = 3;  // and processes, and reasons
  bool is_long = false;     // also the functions by total, and notes line by line

  static ReportScale of(std::size_t top) {
    if (top == 0) return {};
    return {.rows = top,
            .paths = std::max<std::size_t>(top * 2, 40),
            .threads = std::max<std::size_t>(top / 2, 10),
            .is_long = true};
  }
};

// The usual parts of a report as text, in their order.

// What, how long, when, and what the filter left.
void write_header(ReportPage& page, const ReportView& view, const ReportOptions& options);
void write_functions(ReportPage& page, const ReportView& view, const FunctionTables& tables,
                     const ReportScale& scale);
void write_paths(ReportPage& page, const ReportView& view, double min_percent, const ReportScale& scale);
// Both only when there is more than one.
void write_threads(ReportPage& page, const ReportView& view, const ReportScale& scale);
void write_processes(ReportPage& page, const ReportView& view, const ReportScale& scale);
// Of live bytes and objects.
void write_ages(ReportPage& page, const ReportView& view);
void write_missed(ReportPage& page, const ReportView& view, const FunctionTables& tables,
                  const ReportScale& scale);
void write_notes(ReportPage& page, const ReportView& view, const ReportScale& scale);

// Between a function and what calls it.
inline constexpr std::string_view kCallerArrow = "←";

// Lines of a tree of calls.
void write_path_lines(ReportPage& page, std::span<const PathLine> lines, std::string_view arrow);

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

// The tables that replace the usual sections: --modules and --lines.
void write_modules(ReportPage& page, const ReportView& view);
void write_lines(ReportPage& page, const ReportView& view, std::size_t top);

}  // namespace ddprof
