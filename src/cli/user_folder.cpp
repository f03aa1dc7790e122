#include "cli/user_folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace ddprof {

namespace {

constexpr std::string_view kOwnName = "/ddprof";

std::string absolute_value(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

// STATE_DIRECTORY and its like hold every directory of the unit, with colons between them: ours if one is,
// else a folder of ours in the first. A unit that runs another program under ddprof has directories of that
// program.
std::string folder_of_unit(std::string_view paths) {
  std::string_view first = paths.substr(0, paths.find(':'));
  while (!paths.empty()) {
    std::string_view path = paths.substr(0, paths.find(':'));
    if (path.ends_with(kOwnName)) return std::string(path);
    paths.remove_prefix(std::min(path.size() + 1, paths.size()));
  }
  return first.empty() ? "" : std::string(first).append(kOwnName);
}

}  // namespace

std::string user_folder(const char* variable, const char* below_home) {
  if (std::string base = absolute_value(variable); !base.empty()) return base.append(kOwnName);
  // Before HOME: only a unit that asks for such a directory has the variable, and such units often may write
  // nowhere else. HOME of a dynamic user is "/".
  const bool is_cache = std::string_view(variable) == "XDG_CACHE_HOME";
  std::string of_unit = folder_of_unit(absolute_value(is_cache ? "CACHE_DIRECTORY" : "STATE_DIRECTORY"));
  if (!of_unit.empty()) return of_unit;
  std::string home = absolute_value("HOME");
  return home.empty() ? "" : home.append("/").append(below_home).append(kOwnName);
}

}  // namespace ddprof
