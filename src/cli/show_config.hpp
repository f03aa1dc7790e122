#pragma once

#include <string>

#include "cli/options.hpp"

namespace ddprof {

// What --show-config prints: every option, its effective value and where that came from. Secrets are masked.
[[nodiscard]] std::string show_config(const Options& options);

// The options with what is chosen by itself where nothing is set: on this machine, for this user.
[[nodiscard]] Options with_automatic_values(Options options);

// "default", "DD_SERVICE", "ddprof.toml:3", "command line".
[[nodiscard]] std::string describe(const Origin& origin);

}  // namespace ddprof
