#pragma once

#include "cli/report_page.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

namespace ddprof {

// The usual parts of a report as text, in their order.

// What, how long, when, and what the filter left.
void write_header(ReportPage& page, const ReportView& view, const ReportOptions& options);
void write_functions(ReportPage& page, const ReportView& view, const FunctionTables& tables, std::size_t top);
void write_paths(ReportPage& page, const ReportView& view, double min_percent);
// Both only when there is more than one.
void write_threads(ReportPage& page, const ReportView& view);
void write_processes(ReportPage& page, const ReportView& view);
void write_missed(ReportPage& page, const ReportView& view, const FunctionTables& tables);
void write_notes(ReportPage& page, const ReportView& view);

}  // namespace ddprof
