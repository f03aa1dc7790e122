#include "cli/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/scratch_fixture.hpp"
#include "cli/option_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

constexpr const char* kStamp = "[0-9-]+T[0-9:]+Z ddprof\\[[0-9]+\\]: ";

std::string said(const ScratchFolder& folder, std::vector<const char*> arguments,
                 const std::function<void(const Journal&)>& say) {
  arguments.insert(arguments.begin(), {"-o", "log"});
  arguments.push_back("program");
  say(Journal(parsed(arguments), folder.path()));
  return folder.read("log");
}

TEST(Journal, HasALineForEachMessage) {
  const ScratchFolder folder;
  EXPECT_THAT(said(folder, {},
                   [](const Journal& journal) {
                     journal.say(LogLevel::notice, "all is well");
                     journal.say(LogLevel::informational, "in passing");
                     journal.say(with_hint(make_error(ErrorCode::failed, "it broke"), "mend it"));
                   }),
              MatchesRegex(std::string(kStamp) + "all is well\n" + kStamp + "it broke; try: mend it\n"));
}

TEST(Journal, SaysWhatIsAskedFor) {
  const auto say_all = [](const Journal& journal) {
    for (const LogLevel level : {LogLevel::debug, LogLevel::informational, LogLevel::notice})
      journal.say(level, std::to_string(static_cast<int>(level)));
    journal.say(make_error(ErrorCode::failed, "trouble"));
  };
  const ScratchFolder debug, error;
  EXPECT_THAT(said(debug, {"-l", "debug"}, say_all), HasSubstr(": 0\n"));
  EXPECT_THAT(said(error, {"-l", "error"}, say_all), MatchesRegex(std::string(kStamp) + "trouble\n"));
}

TEST(Journal, MakesForeignStringsPrintable) {
  const ScratchFolder folder;
  EXPECT_THAT(said(folder, {},
                   [](const Journal& journal) {
                     journal.say(make_error(ErrorCode::failed, "peer says \x1b[2J\nforged line\xff"));
                   }),
              MatchesRegex(std::string(kStamp) + "peer says \uFFFD\\[2J\uFFFDforged line\uFFFD\n"));
}

TEST(Journal, CutsWhatIsTooLong) {
  const ScratchFolder folder;
  EXPECT_LT(
      said(folder, {}, [](const Journal& journal) { journal.say(LogLevel::notice, std::string(9000, 'x')); })
          .size(),
      4096U);
}

TEST(Journal, IsCheckedBeforeItIsNeeded) {
  const ScratchFolder folder;
  EXPECT_TRUE(Journal(parsed({"-o", "log", "program"}), folder.path()).check().ok());
  EXPECT_TRUE(folder.has("log"));
  const auto refused = Journal(parsed({"-o", "/no/such/log", "program"}), folder.path()).check();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "--log-mode: open /no/such/log: No such file or directory");
  for (const char* mode : {"stdout", "stderr", "syslog", "disabled"})
    EXPECT_TRUE(Journal(parsed({"-o", mode, "program"}), "/no/such/folder").check().ok());
}

TEST(Journal, IsAStreamOfTheUserUnlessAnotherPlaceIsChosen) {
  EXPECT_EQ(Journal(parsed({"program"}), "").stream(), 2);
  EXPECT_EQ(Journal(parsed({"-o", "stdout", "program"}), "").stream(), 1);
  EXPECT_EQ(Journal(parsed({"-o", "/dev/stdout", "program"}), "").stream(), 1);
  EXPECT_EQ(Journal(parsed({"-o", "/dev/stderr", "program"}), "").stream(), 2);
  EXPECT_EQ(Journal(parsed({"-o", "syslog", "program"}), "").stream(), std::nullopt);
  EXPECT_EQ(Journal(parsed({"-o", "log", "program"}), "").stream(), std::nullopt);
}

}  // namespace
}  // namespace ddprof
