#include "cli/tag_pairs.hpp"

#include "export/datadog_tags.hpp"

namespace ddprof {

std::vector<std::pair<std::string, std::string>> tag_pairs(std::string_view text) {
  DatadogTags tags;
  tags.add_all(text);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& tag : tags.list()) {
    const std::size_t colon = tag.find(':');
    if (colon != std::string::npos) pairs.emplace_back(tag.substr(0, colon), tag.substr(colon + 1));
  }
  return pairs;
}

}  // namespace ddprof
