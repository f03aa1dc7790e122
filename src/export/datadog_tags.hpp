#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ddprof {

// Tags, "key:value", as Datadog takes them: usually each key once, one line, no commas.
class DatadogTags {
 public:
  // Nothing when the value is empty, or the key is there already: who adds first wins. Characters that would
  // end the tag are replaced; what is longer than 200 bytes is cut.
  void add(std::string_view key, std::string_view value);
  // Also where the key is there already.
  void add_another(std::string_view key, std::string_view value);
  // Tags of a user, as in DD_TAGS: separated by commas, or by spaces where there is no comma. Returns those
  // that cannot be tags.
  std::vector<std::string> add_all(std::string_view text);

  [[nodiscard]] const std::vector<std::string>& list() const { return tags_; }
  [[nodiscard]] std::string joined() const;

 private:
  [[nodiscard]] bool has(std::string_view key) const;

  std::vector<std::string> tags_;
};

}  // namespace ddprof
