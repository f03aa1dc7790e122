#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddprof {

// Names and values, as Pyroscope's parameter `name` has them behind the application.
using PyroscopeLabels = std::vector<std::pair<std::string, std::string>>;

// "shop{env=prod,team=a}". There is no way to escape anything in it: characters that would end a name or a
// value, or that the server refuses, become underscores. Labels without a value are left out.
std::string pyroscope_name(std::string_view application, const PyroscopeLabels& labels);

}  // namespace ddprof
