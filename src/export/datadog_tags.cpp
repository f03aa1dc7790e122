#include "export/datadog_tags.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ddprof {

namespace {

constexpr std::size_t kLongestTag = 200;
constexpr std::string_view kBlanks = " \t\r\n";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_tag(std::string_view text) { return !text.empty() && is_letter(text.front()) && text.back() != ':'; }

// On one line, and not in the middle of a UTF-8 character.
std::string fitting(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == ',' || (c >= 0 && c < ' ') || c == '\x7f'; }, '_');
  if (text.size() > kLongestTag) {
    std::size_t end = kLongestTag;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    text.resize(end);
  }
  while (text.ends_with(':')) text.pop_back();
  return text;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

bool DatadogTags::has(std::string_view key) const {
  return std::any_of(tags_.begin(), tags_.end(),
                     [key](std::string_view tag) { return tag.substr(0, tag.find(':')) == key; });
}

void DatadogTags::add(std::string_view key, std::string_view value) {
  if (!has(key)) add_another(key, value);
}

void DatadogTags::add_another(std::string_view key, std::string_view value) {
  if (!value.empty()) tags_.push_back(fitting(fmt::format("{}:{}", key, value)));
}

std::vector<std::string> DatadogTags::add_all(std::string_view text) {
  std::vector<std::string> refused;
  const char separator = text.find(',') == std::string_view::npos ? ' ' : ',';
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view tag = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (tag.empty()) continue;
    if (!is_tag(tag)) {
      refused.emplace_back(tag);
    } else if (!has(tag.substr(0, tag.find(':')))) {
      tags_.push_back(fitting(std::string(tag)));
    }
  }
  return refused;
}

std::string DatadogTags::joined() const { return fmt::format("{}", fmt::join(tags_, ",")); }

}  // namespace ddprof
