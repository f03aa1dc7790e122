#pragma once

#include <string>

namespace ddprof {

// --help: the common options, in 80 columns.
[[nodiscard]] std::string help_text();

// --help-extended: every option, with environment variables and defaults.
[[nodiscard]] std::string help_extended_text();

// docs/commands.md; `make docs` writes it and a test compares.
[[nodiscard]] std::string commands_markdown();

// -v
[[nodiscard]] std::string version_text();

}  // namespace ddprof
