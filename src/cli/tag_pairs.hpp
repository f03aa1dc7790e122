#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ddprof {

// Tags as the user gives them (DD_TAGS), key and value, each key once. Those without a value are left out.
std::vector<std::pair<std::string, std::string>> tag_pairs(std::string_view text);

}  // namespace ddprof
