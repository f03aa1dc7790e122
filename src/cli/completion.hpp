#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/command_table.hpp"
#include "cli/option_table.hpp"

namespace ddprof {

// The script that completes ddprof's command line in bash, zsh or fish: commands, options of the command,
// values of options, and then the program and its arguments.
Result<std::string> completion_script(std::string_view shell);

// What the scripts of all shells are made from.

// What can stand for the value of an option.
enum class ValueKind : std::uint8_t { nothing, text, words, file, folder, process, user, profile };

[[nodiscard]] ValueKind value_kind(const OptionRow& row);

// The words that an option knows; for events their names.
[[nodiscard]] std::vector<std::string_view> known_words(const OptionRow& row);

// The options that are offered: "-F", "--frequency"; "--no-timeline" where that is the one of interest.
[[nodiscard]] std::vector<std::string> spellings(const OptionRow& row);

// What an option does, in this spelling.
[[nodiscard]] std::string description_of(const OptionRow& row, std::string_view spelling);

// Rows of a command that are offered.
[[nodiscard]] std::vector<const OptionRow*> offered_options(Command command);

// Commands that have a row, "ddprof" for the one without a word.
[[nodiscard]] std::string_view word_of(const CommandRow& row);

// In single quotes, for a shell.
[[nodiscard]] std::string shell_quoted(std::string_view text);

// The template with each @NAME@ replaced.
struct Replacement {
  std::string_view name;
  std::string text;
};
[[nodiscard]] std::string filled_in(std::string_view text, const std::vector<Replacement>& replacements);

[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

}  // namespace ddprof
