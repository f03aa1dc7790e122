#pragma once

#include <string>

#include "cli/options.hpp"

namespace ddprof {

// What --show-config prints: every option, its value and where the value came from. Secrets are masked.
[[nodiscard]] std::string show_config(const Options& options);

// "default", "DD_SERVICE", "ddprof.toml:3", "command line".
[[nodiscard]] std::string describe(const Origin& origin);

}  // namespace ddprof
