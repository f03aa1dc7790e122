#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ddprof {

// Lines of a text, without their ends.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}

  std::optional<std::string_view> next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return line;
  }
  // What has not been handed out yet.
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

// Takes a number off the front of `text`, which may begin with spaces and, for base 16, with "0x".
[[nodiscard]] inline std::optional<std::uint64_t> take_number(std::string_view& text, int base = 10) {
  std::string_view rest = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  if (base == 16 && (rest.starts_with("0x") || rest.starts_with("0X"))) rest.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number, base);
  if (error != std::errc()) return std::nullopt;
  text = rest.substr(static_cast<std::size_t>(end - rest.data()));
  return number;
}

// Takes `word`, which may follow spaces, off the front of `text`; false when something else is there.
[[nodiscard]] inline bool take_word(std::string_view& text, std::string_view word) {
  std::string_view rest = text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
  if (!rest.starts_with(word)) return false;
  text = rest.substr(word.size());
  return true;
}

}  // namespace ddprof
