#pragma once

#include <cstddef>

#include "cli/report_page.hpp"
#include "report/view.hpp"

namespace ddprof {

// The tables that replace the usual sections: --modules and --lines.
void write_modules(ReportPage& page, const ReportView& view);
void write_lines(ReportPage& page, const ReportView& view, std::size_t top);

}  // namespace ddprof
