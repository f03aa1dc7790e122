#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/report_page.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

namespace ddprof {

// One line of source or one instruction, with what was sampled on it.
struct ListingRow {
  std::uint64_t number = 0;  // of the line, or the instruction's address in the file
  StackSum sum = {};
  std::string text = {};
  std::string place = {};  // instructions: "app.cc:34" where the profile knows it
};

struct Listing {
  std::string title = {};          // the file or the symbol
  std::string problem = {};        // why there is no text
  std::string note = {};           // what to keep in mind
  std::vector<ListingRow> rows{};  // where numbers jump, cold rows are left out
};

// Leaves out of a long listing what is not near the hottest rows.
void keep_hot_rows(std::vector<ListingRow>& rows);

// The hottest rows by self, then by total, at most `count`; none that are empty.
std::vector<const ListingRow*> hottest_rows(const std::vector<ListingRow>& rows, std::size_t count);

// The function that `name` means, of those with samples: its whole name, else the name without scope and
// arguments, else a part that only one function has. `option` is how the user asked for it. Several rows when
// modules have functions of the same whole name. Fails with the candidates when there is more than one.
Result<std::vector<SumRow>> find_functions(const ReportView& view, const FunctionTables& tables,
                                           const std::string& name, std::string_view option);

// The instructions of one function with what was sampled on each, one listing per symbol that holds code of
// it (its own, and those that it was inlined into), hottest first. A listing without rows says why in
// `problem`.
std::vector<Listing> annotate_code(const ReportView& view, std::uint32_t frame);

// The source of one function with what was sampled on each line, one listing per file; empty when the profile
// has no lines of it. Inlined copies of the function count where they ran.
std::vector<Listing> annotate_source(const ReportView& view, std::uint32_t frame,
                                     const std::string& source_dir);

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
