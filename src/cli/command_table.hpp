#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/options.hpp"

namespace ddprof {

// The one list of commands. Parsing, help, suggestions, man pages, completion and docs/commands.md read it;
// which options a command has is said by the option table.

class CommandSet {
 public:
  constexpr CommandSet() = default;
  constexpr CommandSet(std::initializer_list<Command> commands) {
    for (const Command command : commands) bits_ |= bit(command);
  }
  [[nodiscard]] constexpr bool has(Command command) const { return (bits_ & bit(command)) != 0; }

 private:
  static constexpr std::uint32_t bit(Command command) { return 1U << static_cast<unsigned>(command); }
  std::uint32_t bits_ = 0;
};

// What the words of a command that are not options are; for completion.
enum class Arguments : std::uint8_t { none, program, profiles, conversion, folder, command, shell };

struct CommandExample {
  std::string_view line, meaning;
};

struct CommandRow {
  std::string_view name;                // empty: ddprof itself, in front of a program
  std::optional<Command> command = {};  // none: a word for a later version
  std::string_view usage = {};          // what follows the name; a line for each form
  std::string_view summary = {};        // a few words, for lists
  std::string_view description = {};    // sentences
  std::span<const CommandExample> examples = {};
  Arguments arguments = Arguments::none;
};

// In the order of help; the first is ddprof itself.
[[nodiscard]] std::span<const CommandRow> command_table();

// By its word; nothing when there is none.
[[nodiscard]] const CommandRow* find_command(std::string_view word);

// The row of a command that has one.
[[nodiscard]] const CommandRow& command_row(Command command);

// "ddprof", "ddprof record"
[[nodiscard]] std::string full_name(const CommandRow& row);
[[nodiscard]] std::string full_name(Command command);

// "; did you mean ddprof record?" for a mistyped word, or nothing.
[[nodiscard]] std::string did_you_mean_command(std::string_view word);

// "not in this version", with how to run a program of that name.
[[nodiscard]] Error reserved_word_error(const CommandRow& row);

}  // namespace ddprof
