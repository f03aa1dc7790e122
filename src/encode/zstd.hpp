#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

// One frame that tells its size.
Result<std::string> zstd(std::string_view bytes, int level = 1);

}  // namespace ddprof
