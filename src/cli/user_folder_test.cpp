#include "cli/user_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>

namespace ddprof {
namespace {

class UserFolder : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"XDG_STATE_HOME", "XDG_CACHE_HOME", "STATE_DIRECTORY", "CACHE_DIRECTORY", "HOME"}) {
      if (const char* value = std::getenv(name))
        before_[name] = value;
      else
        before_[name] = std::nullopt;
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  static std::string state() { return user_folder("XDG_STATE_HOME", ".local/state"); }
  static std::string cache() { return user_folder("XDG_CACHE_HOME", ".cache"); }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(UserFolder, IsNowhereWhereNothingSaysWhere) {
  EXPECT_EQ(state(), "");
  set("HOME", "relative");
  EXPECT_EQ(state(), "");
}

TEST_F(UserFolder, IsBelowTheHomeDirectory) {
  set("HOME", "/home/ann");
  EXPECT_EQ(state(), "/home/ann/.local/state/ddprof");
  EXPECT_EQ(cache(), "/home/ann/.cache/ddprof");
}

TEST_F(UserFolder, IsTheDirectoryThatSystemdMadeForTheUnit) {
  set("HOME", "/");  // as for a dynamic user
  set("STATE_DIRECTORY", "/var/lib/ddprof");
  set("CACHE_DIRECTORY", "/var/cache/ddprof");
  EXPECT_EQ(state(), "/var/lib/ddprof");
  EXPECT_EQ(cache(), "/var/cache/ddprof");
}

TEST_F(UserFolder, IsAFolderInTheDirectoryOfAnotherProgramsUnit) {
  set("STATE_DIRECTORY", "/var/lib/redis:/var/lib/other");
  EXPECT_EQ(state(), "/var/lib/redis/ddprof");
  set("STATE_DIRECTORY", "/var/lib/redis:/var/lib/ddprof");
  EXPECT_EQ(state(), "/var/lib/ddprof");
  EXPECT_EQ(cache(), "");
}

TEST_F(UserFolder, IsWhereTheUserSaysBeforeAllElse) {
  set("HOME", "/home/ann");
  set("STATE_DIRECTORY", "/var/lib/ddprof");
  set("XDG_STATE_HOME", "/profiles");
  EXPECT_EQ(state(), "/profiles/ddprof");
  set("XDG_STATE_HOME", "not/absolute");
  EXPECT_EQ(state(), "/var/lib/ddprof");
}

}  // namespace
}  // namespace ddprof
