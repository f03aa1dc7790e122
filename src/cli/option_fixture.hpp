#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_parser.hpp"

namespace ddprof {

// For tests: a command line with an environment and files made of maps.
struct OptionFixture {
  std::map<std::string, std::string> variables = {};
  std::map<std::string, std::string> files = {};

  [[nodiscard]] Result<Options> parse(const std::vector<const char*>& args) const {
    const auto environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    };
    const auto read_file = [this](const std::string& path) -> Result<std::string> {
      const auto found = files.find(path);
      if (found == files.end())
        return make_error(ErrorCode::not_found, "open {}: No such file or directory", path);
      return found->second;
    };
    return parse_options(args, environment, read_file);
  }

  [[nodiscard]] Options parsed(const std::vector<const char*>& args) const {
    auto options = parse(args);
    EXPECT_TRUE(options.ok()) << options.error().message;
    return options.ok() ? std::move(options).value() : Options{};
  }

  [[nodiscard]] Error failure(const std::vector<const char*>& args) const {
    auto options = parse(args);
    EXPECT_FALSE(options.ok());
    return options.ok() ? Error{} : std::move(options).error();
  }
};

// With an empty environment and no files.
inline Options parsed(const std::vector<const char*>& args) { return OptionFixture{}.parsed(args); }
inline Error failure(const std::vector<const char*>& args) { return OptionFixture{}.failure(args); }

}  // namespace ddprof
