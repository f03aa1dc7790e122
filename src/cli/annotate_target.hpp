#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

namespace ddprof {

// The function that `name` means, of those with samples: its whole name, else the name without scope and
// arguments, else a part that only one function has. `option` is how the user asked for it. Several rows when
// modules have functions of the same whole name. Fails with the candidates when there is more than one.
Result<std::vector<SumRow>> find_functions(const ReportView& view, const FunctionTables& tables,
                                           const std::string& name, std::string_view option);

}  // namespace ddprof
