#include "cli/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_table.hpp"
#include "cli/option_table.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

// The shells themselves are asked in tests/system/test_help.py.
TEST(Completion, EveryShellKnowsEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script(shell);
    ASSERT_TRUE(script.ok());
    for (const CommandRow& row : command_table()) {
      if (row.command && !row.name.empty()) {
        EXPECT_THAT(*script, HasSubstr(std::string(row.name))) << shell;
      }
    }
    for (const OptionRow& row : option_table()) {
      const bool is_offered = row.has_effect && row.level != OptionLevel::hidden;
      const bool is_fish = std::string_view(shell) == "fish";
      const std::string name = (is_fish ? " -l " : "--") + std::string(row.name);
      if (is_offered) {
        EXPECT_THAT(*script, HasSubstr(name)) << shell;
      }
      if (row.level == OptionLevel::hidden) {
        EXPECT_THAT(*script, Not(HasSubstr(name))) << shell;
      }
    }
    EXPECT_THAT(*script, Not(testing::ContainsRegex("@[A-Z_]+@"))) << shell;
  }
}

TEST(Completion, AnotherShellIsRefused) {
  EXPECT_EQ(completion_script("tcsh").error().message, "completion tcsh: no such shell here");
}

}  // namespace
}  // namespace ddprof
