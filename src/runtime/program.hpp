#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/privileges.hpp"

namespace ddprof {

inline constexpr int kExitNotFound = 127;  // as shells do
inline constexpr int kExitNotExecutable = 126;

// Finds `name` as execvp would and checks that it may be executed, before anything is started for it.
Result<std::string> find_program(const std::string& name);

// That, and whether it can be run with no more rights than these. What is wrong is said; nothing: go on.
std::optional<int> refuse_to_run(const std::string& name, const PrivilegeLimits& limits,
                                 const std::function<void(const Error&)>& say_error);

// 127 when the program does not exist, 126 when it cannot be executed.
int exit_status_of(const Error& error);

// Variables as one text and back, to be sent through a pipe: each behind a zero byte.
std::string join_environment(const std::vector<std::string>& variables);
std::vector<std::string> split_environment(std::string_view text);

// Sets variables, "NAME=VALUE", that the program needs to be profiled. What LD_PRELOAD has already comes
// after it.
void add_to_environment(const std::vector<std::string>& variables);

// Becomes the program. Returns only when that fails, with the reason.
Error exec_program(const std::vector<std::string>& program);

// Gives up what is asked for, then becomes the program. Returns, when one of them fails, the exit status,
// after the reason has been said: a program is never run with more rights than it was meant to have.
int exec_limited(const std::vector<std::string>& program, const PrivilegeLimits& limits,
                 const std::function<void(const Error&)>& say_error);

}  // namespace ddprof
