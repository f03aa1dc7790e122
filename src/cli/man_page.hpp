#pragma once

#include <string>

#include "cli/options.hpp"

namespace ddprof {

// --help-man: ddprof(1), or after a command ddprof-COMMAND(1), in the macros of man(7).
[[nodiscard]] std::string man_page(Command command);

}  // namespace ddprof
