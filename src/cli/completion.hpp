#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace ddprof {

// The script that completes ddprof's command line in bash, zsh or fish: commands, options of the command,
// values of options, and then the program and its arguments.
Result<std::string> completion_script(std::string_view shell);

}  // namespace ddprof
