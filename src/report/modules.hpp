#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/sums.hpp"
#include "report/view.hpp"

namespace ddprof {

// A comment of a profile that says what named the frames of one module: "names: /usr/bin/app: debug file,
// lines".
inline constexpr std::string_view kNamesComment = "names: ";

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
