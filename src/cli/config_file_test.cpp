#include "cli/config_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "cli/option_table.hpp"
#include "cli/option_value.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<ConfigEntry> read(std::string_view text) {
  auto entries = parse_config(text, "f");
  EXPECT_TRUE(entries.ok()) << entries.error().message;
  return entries.ok() ? std::move(entries).value() : std::vector<ConfigEntry>{};
}

std::string complaint(std::string_view text) {
  const auto entries = parse_config(text, "f");
  EXPECT_FALSE(entries.ok()) << text;
  return entries.ok() ? std::string() : entries.error().message;
}

TEST(ConfigFile, ReadsStringsNumbersBooleansAndArrays) {
  const auto entries = read(
      "# a comment\n"
      "\n"
      "service = \"my \\\"service\\\"\"  # another\n"
      "tags='a:1,#b'\r\n"
      "upload_period=30\n"
      "  enable = false\n"
      "event = [ \"sCPU\", # inside\n"
      "  'hINST p=3',\n"
      "]\n"
      "preset = []");
  ASSERT_EQ(entries.size(), 6U);
  EXPECT_EQ(entries[0].key, "service");
  EXPECT_EQ(entries[0].line, 3U);
  EXPECT_THAT(entries[0].values, ElementsAre("my \"service\""));
  EXPECT_THAT(entries[1].values, ElementsAre("a:1,#b"));
  EXPECT_THAT(entries[2].values, ElementsAre("30"));
  EXPECT_THAT(entries[3].values, ElementsAre("false"));
  EXPECT_EQ(entries[4].line, 7U);
  EXPECT_THAT(entries[4].values, ElementsAre("sCPU", "hINST p=3"));
  EXPECT_EQ(entries[5].line, 10U);
  EXPECT_TRUE(entries[5].values.empty());
}

TEST(ConfigFile, AnEmptyFileSetsNothing) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("\n # only this\n\n").empty());
}

TEST(ConfigFile, NamesTheLineOfAMistake) {
  EXPECT_EQ(complaint("\n[section]\n"), "f:2: tables are not used here; write option = value");
  EXPECT_EQ(complaint("service"), "f:1: expected option = value");
  EXPECT_EQ(complaint("= 5"), "f:1: expected option = value");
  EXPECT_EQ(complaint("service = mine"), "f:1: mine: put text in quotes");
  EXPECT_EQ(complaint("service = "), "f:1: expected a value: a string in quotes, a number, true or false");
  EXPECT_EQ(complaint("service = \"a"), "f:1: the string has no closing \"");
  EXPECT_EQ(complaint("service = 'a\n'"), "f:1: the string has no closing '");
  EXPECT_EQ(complaint("service = \"a\\q\""), "f:1: unknown escape in the string; use \\\\, \\\", \\n or \\t");
  EXPECT_EQ(complaint("service = \"a\\"), "f:1: unknown escape in the string; use \\\\, \\\", \\n or \\t");
  EXPECT_EQ(complaint("\nevent = [\"a\"\n"), "f:3: expected , or ] in the array");
  EXPECT_EQ(complaint("event = [\"a\",\n"), "f:1: the array has no ]");
  EXPECT_EQ(complaint("port = 1 2"), "f:1: unexpected text after port");
  EXPECT_EQ(complaint("port = 1\nhost = 'a'\nport = 2"), "f:3: port is set a second time (first in line 1)");
}

TEST(ConfigFile, ACapturedConfigurationReadsBackAsTheSameOptions) {
  OptionFixture fixture;
  fixture.variables = {{"DD_TAGS", "path:C:\\x,say:\"hi\""}, {"DD_API_KEY", "0123456789abcdef"}};
  const std::vector<const char*> args = {"-S",
                                         "a b",
                                         "-e",
                                         "sCPU f=7",
                                         "-e",
                                         "hINST",
                                         "--nice",
                                         "-5",
                                         "--no-timeline",
                                         "-l",
                                         "warn",
                                         "--engine",
                                         "perf",
                                         "--stack-sample-size",
                                         "1024",
                                         "x"};
  const auto before = fixture.parse(args);
  ASSERT_TRUE(before.ok()) << before.error().message;
  const std::string captured = capture_config(*before);
  EXPECT_THAT(captured, Not(HasSubstr("0123456789abcdef")));

  OptionFixture again;
  again.files["./ddprof.toml"] = captured;
  const auto after = again.parse({"x"});
  ASSERT_TRUE(after.ok()) << after.error().message << "\n" << captured;
  for (const OptionRow& row : option_table()) {
    if (row.is_secret || row.name == "config") continue;
    EXPECT_EQ(option_text(*before, row), option_text(*after, row)) << row.name;
  }
  EXPECT_EQ(after->event_texts, before->event_texts);
  EXPECT_EQ(capture_config(*after), captured);
}

TEST(ConfigFile, TheCommentedDefaultsAreValidWhenUncommented) {
  const auto options = OptionFixture{}.parse({"x"});
  ASSERT_TRUE(options.ok());
  std::string text = capture_config(*options);
  text = text.substr(text.find('\n') + 1);
  OptionFixture fixture;
  std::string& file = fixture.files["./ddprof.toml"];
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    const std::string line = text.substr(start, end - start);
    EXPECT_TRUE(line.starts_with("# ")) << line;
    const bool is_unset =
        line.ends_with("= \"\"");  // an option without a default cannot be written as a value
    if (!is_unset) file += line.substr(2) + "\n";
    start = end + 1;
  }
  const auto again = fixture.parse({"x"});
  ASSERT_TRUE(again.ok()) << again.error().message;
  for (const OptionRow& row : option_table()) {
    if (row.name == "config") continue;
    EXPECT_EQ(option_text(*options, row), option_text(*again, row)) << row.name;
  }
}

}  // namespace
}  // namespace ddprof
