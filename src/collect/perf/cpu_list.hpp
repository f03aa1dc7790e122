#pragma once

#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace ddprof {

// Parses the kernel's notation for sets of CPUs: "0-3,8".
Result<std::vector<int>> parse_cpu_list(std::string_view text);

// CPUs that are online now.
Result<std::vector<int>> online_cpus();

}  // namespace ddprof
