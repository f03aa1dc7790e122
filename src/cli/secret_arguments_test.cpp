#include "cli/option_parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ddprof {
namespace {

std::vector<std::string> hidden(std::vector<std::string> args) {
  std::vector<char*> pointers;
  for (std::string& arg : args) pointers.push_back(arg.data());
  hide_secret_arguments(pointers);
  return args;
}

using Words = std::vector<std::string>;

TEST(SecretArguments, AreOverwrittenInEitherForm) {
  EXPECT_EQ(hidden({"--api-key", "abc", "-S", "shop", "x"}), (Words{"--api-key", "***", "-S", "shop", "x"}));
  EXPECT_EQ(hidden({"--api_key=abc", "x"}), (Words{"--api_key=***", "x"}));
  EXPECT_EQ(hidden({"--otlp-headers=k=v", "--pyroscope-password", "p", "x"}),
            (Words{"--otlp-headers=***", "--pyroscope-password", "*", "x"}));
}

TEST(SecretArguments, EachOfThemIs) {
  EXPECT_EQ(hidden({"--api-key", "abc", "--api-key=de", "x"}),
            (Words{"--api-key", "***", "--api-key=**", "x"}));
}

TEST(SecretArguments, ThoseOfTheProgramAreItsOwn) {
  EXPECT_EQ(hidden({"x", "--api-key", "abc"}), (Words{"x", "--api-key", "abc"}));
  EXPECT_EQ(hidden({"--", "x", "--api-key=abc"}), (Words{"--", "x", "--api-key=abc"}));
}

}  // namespace
}  // namespace ddprof
