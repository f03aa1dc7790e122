#pragma once

#include <cstddef>
#include <string>

#include "cli/option_table.hpp"
#include "cli/options.hpp"

namespace ddprof {

// ddprof --help: the commands on one screen of so many columns.
[[nodiscard]] std::string help_overview(std::size_t columns);

// Usage, what the command does, and examples.
[[nodiscard]] std::string command_introduction(Command command, std::size_t columns);

// ddprof COMMAND --help: that and its options. With the extended ones, each has its environment variable.
[[nodiscard]] std::string command_help(Command command, OptionLevel deepest, std::size_t columns);

// docs/commands.md; `make docs` writes it and a test compares.
[[nodiscard]] std::string commands_markdown();

// --help-commands: the words of all commands, one a line.
[[nodiscard]] std::string command_words_text();

// -v
[[nodiscard]] std::string version_text();

// --help-man: ddprof(1), or after a command ddprof-COMMAND(1), in the macros of man(7).
[[nodiscard]] std::string man_page(Command command);

}  // namespace ddprof
