#include "cli/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/golden_file.hpp"
#include "cli/option_fixture.hpp"
#include "cli/option_table.hpp"
#include "cli/show_config.hpp"

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

TEST(Help, FitsATerminal) {
  EXPECT_LE(longest_line(help_text()), 80U);
  EXPECT_LE(longest_line(help_extended_text()), 80U);
}

// As an entry of its own, not in another's text.
bool has_entry(const std::string& help, const std::string& name) {
  for (const char* before : {"      --", "      --[no-]", ", --", ", --[no-]"})
    for (const char* after : {" ", "\n"})
      if (help.find(before + name + after) != std::string::npos) return true;
  return false;
}

TEST(Help, TheShortHelpOffersOnlyWhatWorks) {
  const std::string text = help_text();
  for (const OptionRow& row : option_table())
    EXPECT_EQ(has_entry(text, std::string(row.name)), row.has_effect && row.level == OptionLevel::basic)
        << row.name;
}

TEST(Help, TheLongHelpAndTheDocumentNameEveryOptionAndVariable) {
  for (const OptionRow& row : option_table()) {
    if (row.level == OptionLevel::hidden) continue;
    const std::string name = std::string(row.name);
    EXPECT_THAT(help_extended_text(), HasSubstr(name));
    EXPECT_THAT(commands_markdown(), HasSubstr(name));
    if (row.environment.empty()) continue;
    EXPECT_THAT(help_extended_text(), HasSubstr("($" + std::string(row.environment) + ")"));
    EXPECT_THAT(commands_markdown(), HasSubstr("`" + std::string(row.environment) + "`"));
  }
  EXPECT_THAT(commands_markdown(), Not(HasSubstr("help-markdown")));
}

TEST(Help, TheTextsAreAsReviewed) { expect_file("tests/golden/cli/help.txt", help_text()); }

TEST(Help, TheExtendedTextIsAsReviewed) {
  expect_file("tests/golden/cli/help_extended.txt", help_extended_text());
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
  EXPECT_THAT(line("socket"), HasSubstr("DD_PROFILING_NATIVE_SOCKET (accepted, no effect"));
  EXPECT_THAT(line("upload-period"), testing::AllOf(HasSubstr("30"), HasSubstr("./ddprof.toml:2")));
  EXPECT_THAT(line("frequency"), testing::AllOf(HasSubstr("49"), HasSubstr("command line")));
  EXPECT_THAT(line("service"), testing::AllOf(HasSubstr("server"), HasSubstr("default: the program's name")));
  EXPECT_THAT(line("(samples)"), HasSubstr("sCPU at 49 Hz"));
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
