#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/options.hpp"

namespace ddprof {

// A config file is the part of TOML that options need: `key = value` lines with strings, numbers, booleans
// and arrays of them, and comments. Tables are refused, because no option has one.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;  // one, or the elements of an array
  std::size_t line = 0;
};

// `path` is only for messages: "ddprof.toml:3: ...".
Result<std::vector<ConfigEntry>> parse_config(std::string_view text, std::string_view path);

// What --capture-config writes: the options that were set as settings, the others as comments. Parses back to
// the same options, except for what is command line only (the target) and for secrets, which are left out.
[[nodiscard]] std::string capture_config(const Options& options);

}  // namespace ddprof
