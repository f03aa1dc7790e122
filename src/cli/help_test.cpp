#include "cli/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command_table.hpp"
#include "cli/golden_fixture.hpp"
#include "cli/option_fixture.hpp"
#include "cli/option_table.hpp"
#include "cli/option_value.hpp"
#include "cli/show_config.hpp"
#include "encode/output_format.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    longest = std::max(longest, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return longest;
}

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::vector<Command> described_commands() {
  std::vector<Command> commands;
  for (const CommandRow& row : command_table()) {
    if (row.command) commands.push_back(*row.command);
  }
  return commands;
}

TEST(Help, FitsTheTerminal) {
  for (const std::size_t columns : {60U, 80U, 100U, 200U}) {
    EXPECT_LE(longest_line(help_overview(columns)), columns);
    for (const Command command : described_commands()) {
      for (const OptionLevel level : {OptionLevel::basic, OptionLevel::extended}) {
        // A word that cannot be broken, such as a line to copy or a variable's name, may stand out.
        const std::size_t allowed = columns < 80 ? 80U : columns;
        EXPECT_LE(longest_line(command_help(command, level, columns)), allowed) << full_name(command);
      }
    }
  }
}

TEST(Help, AWiderTerminalHasFewerLines) {
  const auto lines = [](std::size_t columns) {
    return count_lines(command_help(Command::record, OptionLevel::basic, columns));
  };
  EXPECT_GT(lines(60), lines(100));
  EXPECT_GT(lines(100), lines(200));
}

TEST(Help, TheOverviewIsOneScreenWithEveryCommand) {
  const std::string text = help_overview(80);
  EXPECT_LE(count_lines(text), 40U);
  for (const CommandRow& row : command_table()) {
    if (row.name.empty()) continue;
    EXPECT_EQ(text.find(fmt::format("\n  {} ", row.name)) != std::string::npos, row.command.has_value())
        << row.name;
  }
  EXPECT_THAT(text, HasSubstr("ddprof help COMMAND"));
}

// As an entry of its own, not in another's text.
bool has_entry(const std::string& help, const std::string& name) {
  for (const char* before : {"      --", "      --[no-]", ", --", ", --[no-]"})
    for (const char* after : {" ", "\n"})
      if (help.find(before + name + after) != std::string::npos) return true;
  return false;
}

TEST(Help, ACommandShowsItsOwnOptionsAndNoOthers) {
  for (const Command command : described_commands()) {
    const std::string basic = command_help(command, OptionLevel::basic, 80);
    const std::string extended = command_help(command, OptionLevel::extended, 80);
    for (const OptionRow& row : option_table()) {
      const bool is_own = belongs_to(row, command);
      EXPECT_EQ(has_entry(basic, std::string(row.name)),
                is_own && row.has_effect && row.level == OptionLevel::basic)
          << full_name(command) << " " << row.name;
      EXPECT_EQ(has_entry(extended, std::string(row.name)), is_own && row.level != OptionLevel::hidden)
          << full_name(command) << " " << row.name;
    }
  }
}

TEST(Help, ACommandShowsItsUsageAndAnExample) {
  for (const Command command : described_commands()) {
    const std::string text = command_help(command, OptionLevel::basic, 80);
    EXPECT_TRUE(text.starts_with("Usage: " + full_name(command) + " ")) << text;
    EXPECT_THAT(text, HasSubstr("\nExamples:\n  "));
  }
}

// Examples are command lines that ddprof understands.
TEST(Help, TheExamplesAreAccepted) {
  for (const CommandRow& row : command_table()) {
    for (const CommandExample& example : row.examples) {
      std::string line(example.line.substr(example.line.find("ddprof ") + 7));
      line = line.substr(0, std::min(line.find(" >"), line.find(')')));
      std::vector<std::string> words;
      for (const std::string_view word : split_words(line)) words.emplace_back(word);
      std::vector<const char*> arguments;
      for (const std::string& word : words) arguments.push_back(word.c_str());
      const auto options = OptionFixture{}.parse(arguments);
      EXPECT_TRUE(options.ok()) << example.line << ": " << options.error().message;
    }
  }
}

TEST(Help, TheLongHelpAndTheDocumentNameEveryOptionAndVariable) {
  std::string help;
  for (const Command command : described_commands()) help += command_help(command, OptionLevel::extended, 80);
  for (const OptionRow& row : option_table()) {
    if (row.level == OptionLevel::hidden) continue;
    const std::string name = std::string(row.name);
    EXPECT_THAT(help, HasSubstr(name));
    EXPECT_THAT(commands_markdown(), HasSubstr(name));
    if (row.environment.empty()) continue;
    EXPECT_THAT(help, HasSubstr("($" + std::string(row.environment) + ")"));
    EXPECT_THAT(commands_markdown(), HasSubstr("`" + std::string(row.environment) + "`"));
  }
  EXPECT_THAT(commands_markdown(), Not(HasSubstr("help-markdown")));
}

TEST(Help, OptionsWithoutAnEffectAreMarked) {
  const std::string text = command_help(Command::wrap, OptionLevel::extended, 200);
  for (const OptionRow& row : option_table()) {
    if (row.has_effect) continue;
    const std::size_t start =
        std::min(text.find(fmt::format("--{} ", row.name)), text.find(fmt::format("]{} ", row.name)));
    ASSERT_NE(start, std::string::npos) << row.name;
    EXPECT_THAT(text.substr(start, 300), HasSubstr(kNoEffectNote)) << row.name;
  }
}

TEST(Help, TheOutputNamesEveryExtension) {
  const std::string text = command_help(Command::record, OptionLevel::basic, 80);
  for (const std::string_view extension : split_words(output_extensions()))
    EXPECT_THAT(text, HasSubstr(extension));
  const std::string convert = command_help(Command::convert, OptionLevel::basic, 80);
  for (const std::string_view format : split_words(output_format_names()))
    EXPECT_THAT(convert, HasSubstr(format));
}

TEST(Help, TheOverviewIsAsReviewed) { expect_file("tests/golden/cli/help.txt", help_overview(80)); }

TEST(Help, TheCommandsAreAsReviewed) {
  std::string text;
  for (const CommandRow& row : command_table()) {
    if (row.command)
      text += fmt::format("$ ddprof help {}\n{}\n", row.name.empty() ? "ddprof" : row.name,
                          command_help(*row.command, OptionLevel::basic, 80));
  }
  expect_file("tests/golden/cli/help_commands.txt", text);
}

TEST(Help, TheExtendedTextIsAsReviewed) {
  expect_file("tests/golden/cli/help_extended.txt", command_help(Command::wrap, OptionLevel::extended, 80));
}

TEST(Help, TheEventsTextIsAsReviewed) { expect_file("tests/golden/cli/help_events.txt", events_help()); }

TEST(Help, TheDocumentIsCurrent) { expect_file("docs/commands.md", commands_markdown()); }

TEST(Help, TheConfigurationIsShownAsReviewed) {
  OptionFixture fixture;
  fixture.variables = {{"DD_ENV", "staging"}, {"DD_API_KEY", "0123456789abcdef0123456789abcdef"}};
  fixture.files["./ddprof.toml"] = "upload_period = 30\n";
  const auto options = fixture.parse(
      {"-e", "sCPU f=199; hINST p=1000000", "--show-config", "/usr/bin/server", "--port", "80"});
  ASSERT_TRUE(options.ok()) << options.error().message;
  expect_file("tests/golden/cli/show_config.txt", show_config(*options));
}

TEST(ShowConfig, SaysWhereEachValueCameFrom) {
  OptionFixture fixture;
  fixture.variables = {{"DD_ENV", "staging"}, {"DD_PROFILING_NATIVE_SOCKET", "/run/x"}};
  fixture.files["./ddprof.toml"] = "\nupload_period = 30\n";
  const auto options = fixture.parse({"-F", "49", "/usr/bin/server"});
  ASSERT_TRUE(options.ok());
  const std::string text = show_config(*options);
  const auto line = [&](const std::string& name) {
    const std::size_t start = text.find("\n" + name + " ") + 1;
    return text.substr(start, text.find('\n', start) - start);
  };
  EXPECT_THAT(line("environment"), testing::AllOf(HasSubstr("staging"), HasSubstr("DD_ENV")));
  EXPECT_THAT(line("socket"), HasSubstr("DD_PROFILING_NATIVE_SOCKET (has no effect"));
  EXPECT_THAT(line("upload-period"), testing::AllOf(HasSubstr("30"), HasSubstr("./ddprof.toml:2")));
  EXPECT_THAT(line("frequency"), testing::AllOf(HasSubstr("49"), HasSubstr("command line")));
  EXPECT_THAT(line("service"), testing::AllOf(HasSubstr("server"), HasSubstr("default: the program's name")));
  EXPECT_THAT(line("(samples)"), HasSubstr("sCPU at 49 Hz"));
}

std::string line_of(const std::string& text, const std::string& name) {
  const std::size_t start = text.find("\n" + name + " ") + 1;
  return text.substr(start, text.find('\n', start) - start);
}

// The default of each row is what help says, in one form or the other.
TEST(ShowConfig, SaysWhatHelpSaysOfDefaults) {
  const std::string text = show_config(parsed({"--preset", "cpu_only", "-S", "s", "x"}));
  for (const OptionRow& row : option_table()) {
    const bool is_shown = !std::holds_alternative<std::monostate>(row.slot) &&
                          belongs_to(row, Command::wrap) && row.level != OptionLevel::hidden;
    if (!is_shown || row.name == "preset" || row.name == "service") continue;
    std::string expected = default_of(row);
    if (std::holds_alternative<bool Options::*>(row.slot)) expected = expected == "on" ? "true" : "false";
    EXPECT_THAT(line_of(text, std::string(row.name)), HasSubstr(expected)) << row.name;
  }
  EXPECT_THAT(line_of(text, "log-mode"), HasSubstr("stderr"));
}

TEST(ShowConfig, FillsInWhatIsChosenByItself) {
  const std::string text = show_config(with_automatic_values(parsed({"x"})));
  EXPECT_THAT(line_of(text, "stack-sample-size"),
              testing::ContainsRegex("(65528|32000|16384|8192) +default: "));
  EXPECT_THAT(line_of(text, "frequency"), testing::ContainsRegex("99 +default$"));
  const std::string fast = show_config(with_automatic_values(parsed({"-e", "sCPU f=999", "x"})));
  EXPECT_THAT(line_of(fast, "stack-sample-size"), testing::ContainsRegex("(16384|8192) +default: "));
  EXPECT_THAT(line_of(fast, "frequency"), testing::ContainsRegex("999 +default: of the event"));
  const Options chosen = with_automatic_values(parsed({"--stack-sample-size", "4096", "-F", "7", "x"}));
  EXPECT_EQ(chosen.stack_sample_bytes, 4096);
  EXPECT_EQ(chosen.frequency, 7);
}

TEST(ShowConfig, MasksSecretsWhateverTheirLength) {
  for (const std::string& key : {std::string("0123456789abcdef0123456789abcdef"), std::string("short")}) {
    OptionFixture fixture;
    fixture.variables = {{"DD_API_KEY", key}};
    const auto options = fixture.parse({"x"});
    ASSERT_TRUE(options.ok());
    EXPECT_THAT(show_config(*options), Not(HasSubstr(key.substr(0, 5))));
    EXPECT_THAT(show_config(*options), HasSubstr("****"));
  }
}

}  // namespace
}  // namespace ddprof
