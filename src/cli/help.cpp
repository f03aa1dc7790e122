#include "cli/help.hpp"

#include <algorithm>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/option_value.hpp"
#include "encode/display_text.hpp"

namespace ddprof {

namespace {

// Two columns of text: what can be typed, and what it means.
struct HelpEntry {
  std::string left, right;
};

constexpr std::size_t kHelpIndent = 2;
constexpr std::size_t kHelpGap = 2;

// What is too long for the left column has a line of its own.
std::string entries_text(const std::vector<HelpEntry>& entries, std::size_t right_column,
                         std::size_t columns) {
  std::string text;
  for (const HelpEntry& entry : entries) {
    text += std::string(kHelpIndent, ' ') + entry.left;
    const std::size_t used = kHelpIndent + entry.left.size();
    text += used + kHelpGap > right_column ? '\n' + std::string(right_column, ' ')
                                           : std::string(right_column - used, ' ');
    text += wrapped(entry.right, right_column, columns) + '\n';
  }
  return text;
}

// As far left as the longest entry lets it, and not beyond half of the screen.
std::size_t right_column_of(const std::vector<HelpEntry>& entries, std::size_t columns) {
  std::size_t longest = 0;
  for (const HelpEntry& entry : entries) longest = std::max(longest, entry.left.size());
  return std::min(kHelpIndent + longest + kHelpGap, columns / 2);
}

std::string option_entries(const std::vector<const OptionRow*>& rows, bool with_environment,
                           std::size_t columns) {
  std::vector<HelpEntry> entries;
  for (const OptionRow* row : rows) {
    const std::string letter = row->letter == 0 ? "    " : fmt::format("-{}, ", row->letter);
    std::string right = meaning_of(*row);
    if (const std::string value = default_of(*row); !value.empty()) right += fmt::format(" [{}]", value);
    if (with_environment && !row->environment.empty()) right += fmt::format(" (${})", row->environment);
    if (!row->has_effect) right += fmt::format("; {}", kNoEffectNote);
    entries.push_back({letter + long_form(*row), std::move(right)});
  }
  constexpr std::size_t kLowest = 22, kHighest = 30;
  return entries_text(entries, std::clamp(columns * 3 / 8, kLowest, kHighest), columns);
}

std::string options_text(Command command, OptionLevel deepest, std::size_t columns) {
  const std::vector<const OptionRow*> rows = options_of(command, deepest);
  const bool is_extended = deepest != OptionLevel::basic;
  constexpr std::size_t kFew = 24;
  if (rows.size() <= kFew) return "\nOptions:\n" + option_entries(rows, is_extended, columns);
  std::string text;
  for (const OptionGroup group : option_groups()) {
    std::vector<const OptionRow*> members;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(members),
                 [&](const OptionRow* row) { return row->group == group; });
    if (members.empty()) continue;
    text += fmt::format("\n{}:\n{}", group_title(group), option_entries(members, is_extended, columns));
  }
  return text;
}

std::string usage_text(const CommandRow& row) {
  std::string text;
  for (std::string_view lines = row.usage; !lines.empty();) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text +=
        fmt::format("{}{} {}\n", text.empty() ? "Usage: " : "       ", full_name(row), lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

std::string examples_text(std::span<const CommandExample> examples, std::size_t columns) {
  std::vector<HelpEntry> entries;
  for (const CommandExample& example : examples)
    entries.push_back({std::string(example.line), std::string(example.meaning)});
  return "\nExamples:\n" + entries_text(entries, right_column_of(entries, columns), columns);
}

std::vector<HelpEntry> command_entries() {
  std::vector<HelpEntry> entries;
  for (const CommandRow& row : command_table()) {
    if (row.command && !row.name.empty())
      entries.push_back({std::string(row.name), std::string(row.summary)});
  }
  return entries;
}

std::vector<HelpEntry> first_examples() {
  return {{"ddprof record ./server --port 80", "run it; a summary and a file at the end"},
          {"ddprof record -p 1234 -d 30", "a running process, for 30 seconds"},
          {"ddprof report ddprof-server.pb.gz", "read the profile"},
          {"ddprof -S shop ./server --port 80", "in production: the program keeps its PID"}};
}

std::vector<HelpEntry> further_reading() {
  return {{"ddprof help COMMAND", "one command, its options and examples"},
          {"ddprof help ddprof", "the common options of ddprof PROGRAM"},
          {"ddprof --help-extended", "all of them, with environment variables and defaults"},
          {"ddprof -e help", "events that can be sampled"},
          {"man ddprof", "the same, where it is installed"}};
}

}  // namespace

std::string help_overview(std::size_t columns) {
  const auto section = [&](std::string_view title, const std::vector<HelpEntry>& entries) {
    return fmt::format("\n{}:\n{}", title, entries_text(entries, right_column_of(entries, columns), columns));
  };
  return wrapped("ddprof shows where native programs spend their CPU time.", 0, columns) + "\n\n" +
         usage_text(command_row(Command::wrap)) + "       ddprof COMMAND ...\n" +
         section("Commands", command_entries()) + section("Examples", first_examples()) +
         section("More", further_reading()) + '\n' +
         wrapped("The first word decides: ddprof -- record runs a program called record.", 0, columns) + '\n';
}

std::string command_introduction(Command command, std::size_t columns) {
  const CommandRow& row = command_row(command);
  return usage_text(row) + '\n' + wrapped(row.description, 0, columns) + '\n' +
         examples_text(row.examples, columns);
}

std::string command_help(Command command, OptionLevel deepest, std::size_t columns) {
  std::string text = command_introduction(command, columns) + options_text(command, deepest, columns);
  if (deepest == OptionLevel::basic) {
    const bool has_more =
        options_of(command, OptionLevel::extended).size() > options_of(command, OptionLevel::basic).size();
    if (has_more)
      text += '\n' +
              wrapped(fmt::format("All options, environment variables and defaults: {} --help-extended",
                                  full_name(command)),
                      0, columns) +
              '\n';
    return text;
  }
  text += '\n' + wrapped("Options may be written with - or _.", 0, columns) + '\n';
  if (!takes_files(command))
    text += wrapped("The command line wins over the environment, the environment over the config file.", 0,
                    columns) +
            '\n';
  return text;
}

std::string command_words_text() {
  std::string text;
  for (const HelpEntry& entry : command_entries()) text += entry.left + '\n';
  return text;
}

std::string version_text() { return "ddprof " DDPROF_VERSION "\n"; }

}  // namespace ddprof
