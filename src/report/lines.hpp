#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/sums.hpp"
#include "report/view.hpp"

namespace ddprof {

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

}  // namespace ddprof
