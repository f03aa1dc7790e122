#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace ddprof {

inline constexpr int kExitNotFound = 127;  // as shells do
inline constexpr int kExitNotExecutable = 126;

// Finds `name` as execvp would and checks that it may be executed, before anything is started for it.
Result<std::string> find_program(const std::string& name);

// 127 when the program does not exist, 126 when it cannot be executed.
int exit_status_of(const Error& error);

// Becomes the program. Returns only when that fails, with the reason.
Error exec_program(const std::vector<std::string>& program);

}  // namespace ddprof
