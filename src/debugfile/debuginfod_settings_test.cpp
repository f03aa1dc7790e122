#include "debugfile/debuginfod_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ddprof {
namespace {

std::optional<DebuginfodSettings> settings_of(std::map<std::string, std::string> variables) {
  return debuginfod_settings([&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(DebuginfodSettings, AskNobodyWhoIsNotNamed) {
  EXPECT_FALSE(settings_of({{"HOME", "/home/a"}}).has_value());
  EXPECT_FALSE(settings_of({{"HOME", "/home/a"}, {"DEBUGINFOD_URLS", "  "}}).has_value());
  EXPECT_FALSE(settings_of({{"DEBUGINFOD_URLS", "http://a"}}).has_value());  // nowhere to keep it
}

TEST(DebuginfodSettings, TakeServersInOrder) {
  const auto settings =
      settings_of({{"HOME", "/home/a"}, {"DEBUGINFOD_URLS", " http://a/  https://b:1/c/\n"}});
  ASSERT_TRUE(settings.has_value());
  EXPECT_THAT(settings->urls, testing::ElementsAre("http://a", "https://b:1/c"));
}

TEST(DebuginfodSettings, ShareTheCacheOfElfutils) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/a"}, {"DEBUGINFOD_URLS", "http://a"}};
  EXPECT_EQ(settings_of(variables)->cache_folder, "/home/a/.cache/debuginfod_client");
  variables["XDG_CACHE_HOME"] = "/cache";
  EXPECT_EQ(settings_of(variables)->cache_folder, "/cache/debuginfod_client");
  variables["DEBUGINFOD_CACHE_PATH"] = "/elsewhere";
  EXPECT_EQ(settings_of(variables)->cache_folder, "/elsewhere");
}

TEST(DebuginfodSettings, AlwaysHaveLimits) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/a"}, {"DEBUGINFOD_URLS", "http://a"}};
  for (const char* none : {"0", "", "rubbish", "-1", "99999999999999999999999"}) {
    variables["DEBUGINFOD_MAXSIZE"] = variables["DEBUGINFOD_MAXTIME"] = variables["DEBUGINFOD_TIMEOUT"] =
        none;
    EXPECT_EQ(settings_of(variables)->max_bytes, DebuginfodSettings::kMaxBytes) << none;
    EXPECT_EQ(settings_of(variables)->max_time, DebuginfodSettings::kMaxTime) << none;
    EXPECT_EQ(settings_of(variables)->timeout, std::chrono::seconds(90)) << none;
  }
  variables["DEBUGINFOD_MAXSIZE"] = variables["DEBUGINFOD_MAXTIME"] = variables["DEBUGINFOD_TIMEOUT"] = "12";
  EXPECT_EQ(settings_of(variables)->max_bytes, 12U);
  EXPECT_EQ(settings_of(variables)->max_time, std::chrono::seconds(12));
  EXPECT_EQ(settings_of(variables)->timeout, std::chrono::seconds(12));
}

}  // namespace
}  // namespace ddprof
