#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "report/view.hpp"

namespace ddprof {

// One line of the tree of hot paths.
struct PathLine {
  std::size_t depth = 0;
  std::int64_t value = 0;
  std::vector<std::string_view>
      names;             // a chain of calls with nothing beside it is one line; the view's texts
  bool is_more = false;  // deeper calls are left out below
};

// The calls from the root down that take at least `least` of the column, hottest first. With `by_process`
// each process is a root of its own.
std::vector<PathLine> hot_paths(const ReportView& view, std::int64_t least, bool by_process);

}  // namespace ddprof
