#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace ddprof {

// libddprof.so as it is built into this program.
[[nodiscard]] std::span<const std::byte> embedded_library();

// A file with it that programs can be started with, by an absolute path without spaces or colons: the one
// that is installed with this program, or a copy that is made once for this version, in the first of these
// folders that can hold it.
Result<std::string> provide_library(const std::string& installed, const std::vector<std::string>& folders);
// The same, in the usual places: /run/ddprof for root, so that a program that becomes another user can read
// it; else the user's cache; else a folder of this user's in /tmp.
Result<std::string> provide_library();

}  // namespace ddprof
