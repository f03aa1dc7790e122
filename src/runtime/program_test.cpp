#include "runtime/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace ddprof {
namespace {

TEST(Program, AnEnvironmentTravelsAsText) {
  const std::vector<std::string> variables = {"A=1", "B=", "C=x:y z"};
  EXPECT_EQ(split_environment(join_environment(variables)), variables);
  EXPECT_TRUE(split_environment("").empty());
}

TEST(Program, WhatTheUserPreloadsComesBehindOurLibrary) {
  ::setenv("LD_PRELOAD", "/lib/one.so /lib/two.so:", 1);
  add_to_environment({"LD_PRELOAD=/run/libddprof.so", "OTHER_OF_PROGRAM_TEST=1"});
  EXPECT_STREQ(std::getenv("LD_PRELOAD"), "/run/libddprof.so:/lib/one.so:/lib/two.so");
  EXPECT_STREQ(std::getenv("OTHER_OF_PROGRAM_TEST"), "1");
  add_to_environment({"LD_PRELOAD=/run/libddprof.so"});
  EXPECT_STREQ(std::getenv("LD_PRELOAD"), "/run/libddprof.so:/lib/one.so:/lib/two.so") << "not twice";
  ::unsetenv("LD_PRELOAD");
  add_to_environment({"LD_PRELOAD=/run/libddprof.so", "no variable"});
  EXPECT_STREQ(std::getenv("LD_PRELOAD"), "/run/libddprof.so");
  ::unsetenv("LD_PRELOAD");
  ::unsetenv("OTHER_OF_PROGRAM_TEST");
}

}  // namespace
}  // namespace ddprof
