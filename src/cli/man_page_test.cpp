#include "cli/help.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command_table.hpp"
#include "cli/option_table.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

std::string in_roff(std::string text) {
  for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at + 2))
    text.insert(at, "\\");
  return text;
}

// Whether it is good roff is asked of groff and mandoc in tests/system/test_help.py.
TEST(ManPage, HasTheOptionsOfItsCommand) {
  for (const CommandRow& row : command_table()) {
    if (!row.command) continue;
    const std::string page = man_page(*row.command);
    EXPECT_TRUE(page.starts_with(".TH DDPROF")) << page;
    for (const char* section :
         {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"})
      EXPECT_THAT(page, HasSubstr(fmt::format("\n.SH {}\n", section)));
    for (const OptionRow& option : option_table()) {
      const bool is_in =
          page.find("--" + std::string(option.name)) != std::string::npos ||
          page.find(in_roff("--" + std::string(option.name)) + "\\fR") != std::string::npos ||
          page.find(in_roff("--[no-]" + std::string(option.name)) + "\\fR") != std::string::npos;
      EXPECT_EQ(is_in || option.name == "show-config",
                (belongs_to(option, *row.command) && option.level != OptionLevel::hidden) ||
                    option.name == "show-config")
          << row.name << " " << option.name;
    }
  }
}

TEST(ManPage, NoTextIsTakenForARequest) {
  for (const CommandRow& row : command_table()) {
    if (!row.command) continue;
    const std::string page = man_page(*row.command);
    for (std::size_t start = page.find("\n."); start != std::string::npos;
         start = page.find("\n.", start + 1)) {
      const std::string_view request = std::string_view(page).substr(start + 1, 3);
      const bool is_known = request == ".SH" || request == ".SS" || request == ".TP" || request == ".PP" ||
                            request == ".br" || request == ".EX" || request == ".EE";
      EXPECT_TRUE(is_known) << page.substr(start + 1, 60);
    }
  }
}

TEST(ManPage, EveryCommandHasOne) {
  EXPECT_EQ(command_words_text(), "record\nreport\nlist\nconvert\ndoctor\nhelp\ncompletion\n");
}

}  // namespace
}  // namespace ddprof
