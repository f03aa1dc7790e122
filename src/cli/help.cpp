#include "cli/help.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/option_table.hpp"
#include "cli/option_value.hpp"
#include "encode/display_text.hpp"

namespace ddprof {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHelpColumn = 30;

constexpr std::string_view kIntroduction =
    "ddprof shows where a native program spends its CPU time.\n"
    "\n"
    "  ddprof record ./server --port 80    run it, end with a summary and a file\n"
    "  ddprof record -p 1234 -d 30         look at a running process for 30 seconds\n"
    "  ddprof report server.pprof          read a profile in the terminal\n"
    "  ddprof ./server --port 80           in production: the program keeps its PID\n"
    "\n"
    "Usage:\n"
    "  ddprof [options] program arguments...     -- before a program called record\n"
    "  ddprof [options] -p PID | -g\n"
    "  ddprof record [options] program arguments... | -p PID | -g\n"
    "  ddprof report [options] FILE\n"
    "  ddprof convert IN OUT     pprof, folded, speedscope, firefox, otlp; -: a pipe\n"
    "  ddprof doctor             what works here, and what enables the rest\n";

constexpr auto kGroups =
    std::to_array<OptionGroup>({OptionGroup::target, OptionGroup::sampling, OptionGroup::output,
                                OptionGroup::identity, OptionGroup::upload, OptionGroup::profiler,
                                OptionGroup::configuration, OptionGroup::report, OptionGroup::convert});

bool is_boolean(const OptionRow& row) { return std::holds_alternative<bool Options::*>(row.slot); }

std::string default_of(const OptionRow& row) {
  if (!row.default_note.empty()) return std::string(row.default_note);
  if (is_boolean(row)) return option_text(Options{}, row) == "true" ? "on" : "";
  return option_text(Options{}, row);
}

// "-F, --frequency HZ", "--[no-]timeline"
std::string synopsis(const OptionRow& row) {
  const std::string letter = row.letter == 0 ? "    " : fmt::format("-{}, ", row.letter);
  const bool is_on = is_boolean(row) && default_of(row) == "on";
  const std::string value = row.value.empty() ? std::string() : fmt::format(" {}", row.value);
  return fmt::format("{}--{}{}{}", letter, is_on ? "[no-]" : "", row.name, value);
}

std::string sentence(const OptionRow& row) {
  std::string text(row.help);
  if (!row.choices.empty()) {
    std::string words(row.choices);
    for (std::size_t at = words.find(' '); at != std::string::npos; at = words.find(' ', at + 2))
      words.insert(at, ",");
    text += ": " + words;
  }
  if (const std::string value = default_of(row); !value.empty()) text += fmt::format(" [{}]", value);
  return text;
}

std::string help_entry(const OptionRow& row, bool with_environment) {
  const std::string left = "  " + synopsis(row);
  std::string text = left;
  if (left.size() + 2 > kHelpColumn) {
    text += '\n' + std::string(kHelpColumn, ' ');
  } else {
    text += std::string(kHelpColumn - left.size(), ' ');
  }
  std::string description = sentence(row);
  if (with_environment && !row.environment.empty()) description += fmt::format(" (${})", row.environment);
  text += wrapped(description, kHelpColumn, kColumns) + '\n';
  if (with_environment && !row.has_effect)
    text += fmt::format("{}({})\n", std::string(kHelpColumn, ' '), kNoEffectNote);
  return text;
}

// Options without an effect are a promise to old scripts, not an offer: they are only in the long list.
bool is_listed(const OptionRow& row, OptionLevel deepest) {
  if (row.level > deepest) return false;
  return deepest != OptionLevel::basic || row.has_effect;
}

std::string options_text(OptionLevel deepest) {
  std::string text;
  for (const OptionGroup group : kGroups) {
    std::string entries;
    for (const OptionRow& row : option_table()) {
      if (row.group == group && is_listed(row, deepest))
        entries += help_entry(row, deepest != OptionLevel::basic);
    }
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group_title(group), entries);
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '|') result += '\\';
    result += letter;
  }
  return result;
}

std::string markdown_row(const OptionRow& row) {
  std::string spelling = synopsis(row);
  spelling.erase(0, spelling.find_first_not_of(' '));
  std::string meaning(row.help);
  if (!row.choices.empty()) meaning += fmt::format(" (`{}`)", row.choices);
  if (!row.has_effect) meaning += fmt::format("; *{}*", kNoEffectNote);
  const std::string environment =
      row.environment.empty() ? std::string() : fmt::format("`{}`", row.environment);
  return fmt::format("| `{}` | {} | {} | {} |\n", escaped(spelling), environment, escaped(default_of(row)),
                     escaped(meaning));
}

}  // namespace

std::string help_text() {
  return std::string(kIntroduction) + options_text(OptionLevel::basic) +
         "\nAll options, environment variables and defaults: ddprof --help-extended\n";
}

std::string help_extended_text() {
  return std::string(kIntroduction) + options_text(OptionLevel::extended) +
         "\nOptions may be written with - or _. The command line wins over the environment,\n"
         "the environment over the config file.\n";
}

std::string commands_markdown() {
  std::string text =
      "# Commands and options\n"
      "\n"
      "<!-- Written by `make docs` from src/cli/option_table.cpp; edits here are lost. -->\n"
      "\n"
      "```\n" +
      std::string(kIntroduction) +
      "```\n"
      "\n"
      "The first word decides whether a subcommand is meant; `ddprof -- record` and `ddprof ./record` run a "
      "program of\n"
      "that name. Options end at the program's name or at `--`; everything after belongs to the program.\n"
      "Options may be written with `-` or `_`, and values as `--option value`, `--option=value`, `-o value` "
      "or `-ovalue`.\n"
      "The command line wins over the environment, the environment over the config file (`option = value` "
      "lines in TOML);\n"
      "`--show-config` prints each value and where it came from. An empty environment variable counts as "
      "unset.\n";
  for (const OptionGroup group : kGroups) {
    text += fmt::format("\n## {}\n\n| option | environment | default | meaning |\n|---|---|---|---|\n",
                        group_title(group));
    for (const OptionRow& row : option_table()) {
      if (row.group == group && row.level != OptionLevel::hidden) text += markdown_row(row);
    }
  }
  text += "\n## Events\n\nWhat `ddprof -e help` prints:\n\n```\n" + events_help() + "```\n";
  return text;
}

std::string version_text() { return "ddprof " DDPROF_VERSION "\n"; }

}  // namespace ddprof
