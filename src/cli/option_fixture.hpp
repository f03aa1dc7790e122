#pragma once

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
};

}  // namespace ddprof
