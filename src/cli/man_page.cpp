#include "cli/help.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/commands.hpp"
#include "cli/option_value.hpp"
#include "encode/display_text.hpp"
#include "runtime/program.hpp"

namespace ddprof {

namespace {

// Text that roff prints as it is: a hyphen that can be copied, no escapes, no line that looks like a request.
std::string roff_escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    const bool begins_line = result.empty() || result.back() == '\n';
    if (begins_line && (letter == '.' || letter == '\'')) result += "\\&";
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
  }
  return result;
}

// Running text in short lines, as roff's sources have them.
std::string paragraph(std::string_view text) {
  constexpr std::size_t kRoffColumns = 72;
  return roff_escaped(wrapped(text, 0, kRoffColumns));
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return result;
}

// "ddprof", "ddprof-record"
std::string page_name(const CommandRow& row) {
  return row.name.empty() ? "ddprof" : fmt::format("ddprof-{}", row.name);
}

// What the option is called in bold, what stands for a value in italics.
std::string option_term(const OptionRow& row) {
  std::string text = row.letter == 0 ? std::string() : fmt::format("\\fB\\-{}\\fR, ", row.letter);
  const std::string form = long_form(row);
  const std::size_t space = std::min(form.find(' '), form.size());
  text += fmt::format("\\fB{}\\fR", roff_escaped(form.substr(0, space)));
  if (space < form.size()) text += fmt::format(" \\fI{}\\fR", roff_escaped(form.substr(space + 1)));
  return text;
}

std::string as_sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + '.';
}

std::string option_item(const OptionRow& row) {
  std::string text = paragraph(as_sentence(meaning_of(row)));
  if (const std::string value = default_of(row); !value.empty())
    text += fmt::format("\nDefault: {}.", roff_escaped(value));
  if (!row.environment.empty())
    text += fmt::format("\nEnvironment: \\fB{}\\fR.", roff_escaped(row.environment));
  if (!row.has_effect) text += fmt::format("\nIt {}.", roff_escaped(kNoEffectNote));
  return fmt::format(".TP\n{}\n{}\n", option_term(row), text);
}

std::string options_section(const CommandRow& row) {
  const std::vector<const OptionRow*> rows = options_of(*row.command, OptionLevel::extended);
  std::string text = ".SH OPTIONS\n";
  const bool has_groups = row.arguments == Arguments::program;
  for (const OptionGroup group : option_groups()) {
    std::string items;
    for (const OptionRow* option : rows) {
      if (option->group == group) items += option_item(*option);
    }
    if (has_groups && !items.empty()) text += fmt::format(".SS {}\n", roff_escaped(group_title(group)));
    text += items;
  }
  return text;
}

std::string synopsis_section(const CommandRow& row) {
  std::string text = ".SH SYNOPSIS\n";
  for (std::string_view lines = row.usage; !lines.empty();) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (!text.ends_with("SYNOPSIS\n")) text += ".br\n";
    text += fmt::format("\\fB{}\\fR {}\n", roff_escaped(full_name(row)), roff_escaped(lines.substr(0, end)));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return row.name.empty() ? text + ".br\n\\fBddprof\\fR \\fICOMMAND\\fR ...\n" : text;
}

std::string commands_section() {
  std::string text = ".SH COMMANDS\n";
  for (const CommandRow& row : command_table()) {
    if (!row.command || row.name.empty()) continue;
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\nSee \\fB{}\\fR(1).\n", row.name,
                        roff_escaped(as_sentence(std::string(row.summary))), roff_escaped(page_name(row)));
  }
  return text +
         ".PP\nThe first word decides whether a command is meant:\n"
         "\\fBddprof \\-\\- record\\fR runs a program called record.\n";
}

std::string examples_section(const CommandRow& row) {
  std::string text = ".SH EXAMPLES\n";
  for (const CommandExample& example : row.examples)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff_escaped(example.line),
                        roff_escaped(as_sentence(std::string(example.meaning))));
  return text;
}

constexpr std::string_view kConfigurationSection =
    ".SH CONFIGURATION\n"
    "Options may be written with \\- or _.\n"
    "The command line wins over the environment, the environment over the\n"
    "configuration file, which holds lines \\fIoption\\fR = \\fIvalue\\fR in TOML.\n"
    "An empty environment variable counts as unset.\n"
    "\\fB\\-\\-show\\-config\\fR prints each value and where it came from.\n"
    ".SH FILES\n"
    ".TP\n\\&./ddprof.toml\nThe configuration, where \\fB\\-\\-config\\fR names no other.\n"
    ".TP\n$XDG_STATE_HOME/ddprof or ~/.local/state/ddprof\n"
    "Profiles that are not sent, and in \\fIspool\\fR what waits to be sent.\n"
    ".TP\n$XDG_CACHE_HOME/ddprof or ~/.cache/ddprof\nNames of functions, by build id.\n";

std::string status_section(const CommandRow& row) {
  std::string text = ".SH EXIT STATUS\n";
  const auto item = [&](int status, std::string_view meaning) {
    text += fmt::format(".TP\n{}\n{}\n", status, roff_escaped(meaning));
  };
  if (row.arguments == Arguments::program) {
    text += "With a program, that of the program.\nElse 0, or 1 when profiling failed.\nAnd:\n";
    item(kExitUsage, "The command line made no sense; nothing was run.");
    item(kExitNotExecutable, "The program could not be run as asked.");
    item(kExitNotFound, "There is no such program.");
  } else {
    item(0, row.command == Command::doctor ? "Profiling works." : "It worked.");
    item(1,
         row.command == Command::doctor ? "Profiling does not work at all." : "It failed; a line says why.");
    item(kExitUsage, "The command line made no sense.");
  }
  return text;
}

std::string see_also_section(const CommandRow& row) {
  std::string pages;
  for (const CommandRow& other : command_table()) {
    if (!other.command || other.command == row.command) continue;
    pages += fmt::format("{}\\fB{}\\fR(1)", pages.empty() ? "" : ",\n", roff_escaped(page_name(other)));
  }
  return ".SH SEE ALSO\n" + pages + '\n';
}

}  // namespace

std::string man_page(Command command) {
  const CommandRow& row = command_row(command);
  std::string text = fmt::format(".TH {} 1 \"\" \"ddprof {}\" \"User Commands\"\n",
                                 roff_escaped(upper_case(page_name(row))), DDPROF_VERSION);
  text += ".SH NAME\n" + roff_escaped(page_name(row)) + " \\- " + roff_escaped(row.summary) + '\n';
  text += synopsis_section(row) + ".SH DESCRIPTION\n" + paragraph(row.description) + '\n';
  if (row.name.empty()) text += commands_section();
  text += options_section(row);
  if (row.arguments == Arguments::program) text += kConfigurationSection;
  if (row.name.empty()) text += ".SH EVENTS\n.EX\n" + roff_escaped(events_help()) + ".EE\n";
  return text + status_section(row) + examples_section(row) + see_also_section(row);
}

}  // namespace ddprof
