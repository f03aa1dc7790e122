#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/view.hpp"

namespace ddprof {

// The functions of a report; ids are frames. Markers are not code and have a table of their own.
struct FunctionTables {
  std::vector<SumRow> by_self;   // then by total, then by name
  std::vector<SumRow> by_total;  // then by self, then by name
  std::vector<SumRow> missed;    // markers, by total
};

FunctionTables function_tables(const ReportView& view);

struct LineRow {
  StringIndex file = 0;
  std::int64_t line = 0;
  std::uint32_t frame = 0;  // the function that the line is in
  StackSum sum;
};

struct LineTable {
  std::vector<LineRow> rows;  // by self, then total, then place
  std::int64_t unknown = 0;   // self of samples whose leaf has no line
};

LineTable line_table(const ReportView& view);

// "app.cc:34"
std::string place(std::string_view file, std::int64_t line);

// A comment of a profile that says what named the frames of one module: "names: /usr/bin/app: debug file,
// lines".
inline constexpr std::string_view kNamesComment = "names: ";
// And one that says what would make the next profile better.
inline constexpr std::string_view kHintComment = "hint: ";

// One file with code, all its mappings together.
struct ModuleRow {
  std::string path;      // "[no module]" for frames that belong to none
  std::string build_id;  // empty: unknown
  std::string names;     // what named its frames; empty: not told
  StackSum sum;
};

// By self, then total, then path.
std::vector<ModuleRow> module_rows(const ReportView& view);

}  // namespace ddprof
