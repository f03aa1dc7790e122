#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace ddprof {

// The command line cut into its parts, before any value is understood.
struct CommandWords {
  struct Assignment {
    std::size_t option;  // position in option_table()
    std::string value;
  };
  Command topic = Command::wrap;        // the command that the first word names; whose help is asked for
  Command command = Command::wrap;      // the same, or what an option such as --help asks for
  std::vector<Assignment> assignments;  // in the order given
  std::vector<std::string>
      positionals;  // wrap, record: the program and its arguments, untouched; report, convert: files
  std::vector<std::string_view> secrets;  // values of secret options, where they stand in the arguments
  bool has_double_dash = false;           // the program was set off with --
};

// `args` without the program's own name. The first word decides whether this is a subcommand. Options end at
// the first word that is not one, or at --: what follows belongs to the program.
Result<CommandWords> split_command_words(std::span<const char* const> args);

}  // namespace ddprof
