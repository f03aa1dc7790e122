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
      names;                  // a chain of calls with nothing beside it is one line; the view's texts
  bool is_more = false;       // deeper calls are left out below
  bool is_recursive = false;  // the last name calls itself; see folded()
};

// The calls from the root down that take at least `least` of the column, hottest first. With `by_process`
// each process is a root of its own.
std::vector<PathLine> hot_paths(const ReportView& view, std::int64_t least, bool by_process);

// What one function calls, or what calls it: paths that begin with it, in the direction of the leaf or of the
// root. In a recursion it is the outermost call that is meant.
enum class PathDirection : std::uint8_t { callees, callers };
std::vector<PathLine> paths_from(const ReportView& view, std::uint32_t frame, PathDirection direction,
                                 std::int64_t least);

// The same tree for people: at most `lines` of it, the hottest; an only child with nearly all of its parent
// shares the parent's line, and so does a function that calls itself.
std::vector<PathLine> folded(std::vector<PathLine> paths, std::size_t lines);

}  // namespace ddprof
