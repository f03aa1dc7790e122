#include "base/file_name.hpp"

#include <cstddef>

namespace ddprof {

namespace {

constexpr std::size_t kLongest = 60;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

}  // namespace

std::string safe_file_name(std::string_view text) {
  std::string name;
  for (char c : text.substr(0, kLongest)) {
    const bool may_stay = is_plain(c) && (!name.empty() || (c != '.' && c != '-'));
    if (may_stay || !name.ends_with('_')) name += may_stay ? c : '_';
  }
  return name.empty() ? "_" : name;
}

}  // namespace ddprof
