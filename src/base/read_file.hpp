#pragma once

#include <string>

#include "base/result.hpp"

namespace ddprof {

// The whole content of a small file. Works for /proc and /sys, whose files have no size.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 64U << 20U);

}  // namespace ddprof
