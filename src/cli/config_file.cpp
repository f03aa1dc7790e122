#include "cli/config_file.hpp"

#include <algorithm>
#include <optional>

#include "cli/option_table.hpp"
#include "cli/option_value.hpp"

namespace ddprof {

namespace {

bool is_key_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

class ConfigReader {
 public:
  ConfigReader(std::string_view text, std::string_view path) : rest_(text), path_(path) {}

  Result<std::vector<ConfigEntry>> read() {
    std::vector<ConfigEntry> entries;
    for (skip_blank_lines(); !rest_.empty(); skip_blank_lines()) {
      ConfigEntry entry = TRY(read_entry());
      const auto same = std::find_if(entries.begin(), entries.end(),
                                     [&](const ConfigEntry& other) { return other.key == entry.key; });
      if (same != entries.end()) {
        return fail(entry.line,
                    fmt::format("{} is set a second time (first in line {})", entry.key, same->line));
      }
      entries.push_back(std::move(entry));
    }
    return entries;
  }

 private:
  [[nodiscard]] Error fail(std::size_t line, std::string_view reason) const {
    return make_error(ErrorCode::invalid_argument, "{}:{}: {}", path_, line, reason);
  }

  [[nodiscard]] char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  void advance() {
    if (rest_.front() == '\n') ++line_;
    rest_.remove_prefix(1);
  }

  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') advance();
  }

  void skip_comment() {
    if (peek() != '#') return;
    while (!rest_.empty() && peek() != '\n') advance();
  }

  void skip_blank_lines() {
    for (skip_spaces(), skip_comment(); peek() == '\n'; skip_spaces(), skip_comment()) advance();
  }

  Result<ConfigEntry> read_entry() {
    ConfigEntry entry;
    entry.line = line_;
    if (peek() == '[') return fail(line_, "tables are not used here; write option = value");
    while (is_key_letter(peek())) {
      entry.key += peek();
      advance();
    }
    skip_spaces();
    if (entry.key.empty() || peek() != '=') return fail(entry.line, "expected option = value");
    advance();
    skip_spaces();
    if (peek() == '[') {
      entry.values = TRY(read_array());
    } else {
      entry.values.push_back(TRY(read_scalar()));
    }
    skip_spaces();
    skip_comment();
    if (!rest_.empty() && peek() != '\n')
      return fail(entry.line, fmt::format("unexpected text after {}", entry.key));
    return entry;
  }

  // Elements may stand on lines of their own.
  Result<std::vector<std::string>> read_array() {
    const std::size_t start = line_;
    std::vector<std::string> values;
    advance();
    for (skip_blank_lines(); peek() != ']'; skip_blank_lines()) {
      if (rest_.empty()) return fail(start, "the array has no ]");
      values.push_back(TRY(read_scalar()));
      skip_blank_lines();
      if (peek() == ',') {
        advance();
      } else if (peek() != ']') {
        return fail(line_, "expected , or ] in the array");
      }
    }
    advance();
    return values;
  }

  Result<std::string> read_scalar() {
    if (peek() == '"') return read_quoted();
    if (peek() == '\'') return read_literal();
    std::string word;
    while (is_key_letter(peek()) || peek() == '.' || peek() == '+') {
      word += peek();
      advance();
    }
    if (word.empty()) return fail(line_, "expected a value: a string in quotes, a number, true or false");
    const bool is_word =
        !parse_boolean(word) && word.find_first_not_of("+-.xabcdefABCDEF0123456789") != std::string::npos;
    if (is_word) return fail(line_, fmt::format("{}: put text in quotes", word));
    return word;
  }

  Result<std::string> read_literal() {
    const std::size_t end = rest_.substr(1).find_first_of("'\n");
    if (end == std::string_view::npos || rest_[end + 1] == '\n')
      return fail(line_, "the string has no closing '");
    std::string value(rest_.substr(1, end));
    rest_.remove_prefix(end + 2);
    return value;
  }

  Result<std::string> read_quoted() {
    std::string value;
    advance();
    while (peek() != '"') {
      if (rest_.empty() || peek() == '\n') return fail(line_, "the string has no closing \"");
      if (peek() == '\\') {
        advance();
        const std::optional<char> escaped = unescape(peek());
        if (!escaped) return fail(line_, "unknown escape in the string; use \\\\, \\\", \\n or \\t");
        value += *escaped;
      } else {
        value += peek();
      }
      advance();
    }
    advance();
    return value;
  }

  static std::optional<char> unescape(char letter) {
    switch (letter) {
      case '\\':
      case '"':
        return letter;
      case 'n':
        return '\n';
      case 't':
        return '\t';
      default:
        return std::nullopt;
    }
  }

  std::string_view rest_;
  std::string_view path_;
  std::size_t line_ = 1;
};

std::string toml_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '\n') {
      result += "\\n";
    } else if (letter == '\t') {
      result += "\\t";
    } else {
      if (letter == '"' || letter == '\\') result += '\\';
      result += letter;
    }
  }
  return result + '"';
}

std::string toml_value(const Options& options, const OptionRow& row) {
  if (const auto* list = std::get_if<std::vector<std::string> Options::*>(&row.slot)) {
    std::vector<std::string> items;
    for (const std::string& item : options.**list) items.push_back(toml_quoted(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  const std::string text = option_text(options, row);
  const bool is_bare =
      std::holds_alternative<bool Options::*>(row.slot) ||
      std::holds_alternative<std::int64_t Options::*>(row.slot) ||
      (std::holds_alternative<std::optional<std::int64_t> Options::*>(row.slot) && !text.empty());
  return is_bare ? text : toml_quoted(text);
}

}  // namespace

Result<std::vector<ConfigEntry>> parse_config(std::string_view text, std::string_view path) {
  return ConfigReader(text, path).read();
}

std::string capture_config(const Options& options) {
  std::string text =
      "# ddprof configuration; use it with --config FILE. Lines that begin with # are defaults.\n";
  for (const OptionRow& row : option_table()) {
    if (row.command_line_only || !belongs_to(row, Command::wrap) || row.is_secret ||
        row.level == OptionLevel::hidden || std::holds_alternative<std::monostate>(row.slot)) {
      continue;
    }
    const bool is_set = origin_of(options, row.name).kind != Origin::Kind::default_value;
    text += fmt::format("{}{} = {}\n", is_set ? "" : "# ", row.name, toml_value(options, row));
  }
  return text;
}

}  // namespace ddprof
