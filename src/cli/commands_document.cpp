#include <optional>

#include "cli/command_table.hpp"
#include "cli/help.hpp"
#include "cli/option_value.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kColumns = 100;  // of the texts for a terminal

constexpr std::string_view kRules =
    "The first word decides whether a command is meant; `ddprof -- record` and `ddprof ./record` run a "
    "program of\n"
    "that name. Options end at the program's name or at `--`; everything after belongs to the program.\n"
    "Options may be written with `-` or `_`, and values as `--option value`, `--option=value`, `-o value` or "
    "`-ovalue`.\n"
    "The command line wins over the environment, the environment over the config file (`option = value` "
    "lines in "
    "TOML);\n"
    "`--show-config` prints each value and where it came from. An empty environment variable counts as "
    "unset.\n"
    "`ddprof help COMMAND` shows one command, `ddprof completion bash` (or `zsh`, `fish`) prints a "
    "completion "
    "script,\n"
    "and `make install` installs both that and the man pages.\n";

std::string markdown_cell(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '|') result += '\\';
    result += letter;
  }
  return result;
}

std::string markdown_row(const OptionRow& row) {
  const std::string letter = row.letter == 0 ? std::string() : fmt::format("-{}, ", row.letter);
  std::string meaning(row.help);
  if (const auto words = words_of(row); !words.empty())
    meaning += fmt::format(" (`{}`)", fmt::join(words, " "));
  if (!row.has_effect) meaning += fmt::format("; *{}*", kNoEffectNote);
  if (row.except.has(Command::record)) meaning += "; not of `ddprof record`";
  const std::string environment =
      row.environment.empty() ? std::string() : fmt::format("`{}`", row.environment);
  return fmt::format("| `{}{}` | {} | {} | {} |\n", letter, markdown_cell(long_form(row)), environment,
                     markdown_cell(default_of(row)), markdown_cell(meaning));
}

constexpr std::string_view kTableHead = "| option | environment | default | meaning |\n|---|---|---|---|\n";

// Options of one group, or of all without those that every command has.
std::string options_table(Command command, std::optional<OptionGroup> group) {
  std::string rows;
  for (const OptionRow* row : options_of(command, OptionLevel::extended)) {
    const bool is_action = std::holds_alternative<std::monostate>(row->slot);
    if (group ? row->group == *group : !is_action) rows += markdown_row(*row);
  }
  return rows.empty() ? std::string() : "\n" + std::string(kTableHead) + rows;
}

std::string introduction(const CommandRow& row) {
  return fmt::format("\n## {}\n\n```\n{}```\n", full_name(row), command_introduction(*row.command, kColumns));
}

}  // namespace

std::string commands_markdown() {
  std::string text =
      "# Commands and options\n"
      "\n"
      "<!-- Written by `make docs` from src/cli/option_table.cpp; edits here are lost. -->\n"
      "\n```\n" +
      help_overview(kColumns) + "```\n\n" + std::string(kRules);
  text += introduction(command_row(Command::wrap)) + introduction(command_row(Command::record)) +
          "\nThe following are options of both.\n";
  for (const OptionGroup group : option_groups()) {
    if (const std::string rows = options_table(Command::wrap, group); !rows.empty())
      text += fmt::format("\n### {}\n{}", group_title(group), rows);
  }
  for (const CommandRow& row : command_table()) {
    const bool is_profiling = row.command == Command::wrap || row.command == Command::record;
    if (row.command && !is_profiling) text += introduction(row) + options_table(*row.command, std::nullopt);
  }
  text += "\n## Events\n\nWhat `ddprof -e help` prints:\n\n```\n" + events_help() + "```\n";
  return text;
}

}  // namespace ddprof
