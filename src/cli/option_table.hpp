#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/options.hpp"

namespace ddprof {

// The one list of options. Parsing, environment, config file, help, man pages, completion, --show-config,
// --capture-config and docs/commands.md all read it; an option that is not here does not exist.

// Where the value lives. A row without a slot is a command of its own (--help, --version).
using OptionSlot =
    std::variant<std::monostate, bool Options::*, std::string Options::*, std::int64_t Options::*,
                 std::optional<std::int64_t> Options::*, std::vector<std::string> Options::*,
                 LogLevel Options::*, IntakeFormat Options::*>;

enum class OptionGroup : std::uint8_t {
  target,
  sampling,
  output,
  identity,
  upload,
  profiler,
  configuration,
  report,  // this and the following: options of one command
  convert
};

enum class OptionLevel : std::uint8_t {
  basic,     // in the help of its command
  extended,  // in --help-extended, the man page and docs/commands.md
  hidden,    // works; for developers
};

struct OptionRow {
  std::string_view name;  // with dashes; underscores are accepted everywhere
  char letter = 0;
  std::string_view environment = {};
  OptionSlot slot = {};
  Command command = Command::wrap;  // without a slot: what it asks for
  std::string_view value = {};      // what --help shows for the value: FILE, N; empty: a flag
  OptionGroup group = OptionGroup::target;
  OptionLevel level = OptionLevel::basic;
  std::string_view help = {};
  std::string_view default_note = {};    // when the default is not a plain value
  std::string_view choices = {};         // allowed words, separated by spaces; for enums in their order
  std::string_view hidden_choices = {};  // how more of them may begin; of a text, and not shown
  std::string_view suggestions = {};     // words with a meaning, separated by spaces; others are allowed too
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  std::int64_t multiple = 1;
  bool is_hexadecimal = false;
  bool takes_word = false;  // a flag of which the original wants a value: a true or false may follow it
  bool command_line_only = false;  // not in the config file
  bool is_secret = false;          // masked when shown, never written
  bool has_effect = true;          // false: accepted so that existing scripts work
  CommandSet also = {};            // commands that have it beside those of its group
  CommandSet except = {};          // commands of its group that do not have it
};

// Said of a row that has no effect.
inline constexpr std::string_view kNoEffectNote = "has no effect in this version";

[[nodiscard]] std::span<const OptionRow> option_table();
[[nodiscard]] std::string_view group_title(OptionGroup group);

// Whether a command has the option: on its command line and in its help. What ddprof itself has may stand in
// the environment and the configuration.
[[nodiscard]] bool belongs_to(const OptionRow& row, Command command);

// By long name without the leading dashes, in either spelling; nothing when there is none.
[[nodiscard]] std::optional<std::size_t> find_option(std::string_view name);
[[nodiscard]] std::optional<std::size_t> find_option(char letter);
[[nodiscard]] bool is_flag(const OptionRow& row);

// Dashes for underscores: the one spelling that names are compared in.
[[nodiscard]] std::string with_dashes(std::string_view name);

// "; did you mean --frequency?" for a mistyped or shortened long name, or nothing: among the options of a
// command. `prefix` is "--" on the command line.
[[nodiscard]] std::string did_you_mean_option(std::string_view name, std::string_view prefix,
                                              Command command);

[[nodiscard]] const Origin& origin_of(const Options& options, std::string_view name);

}  // namespace ddprof
