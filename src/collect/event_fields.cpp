#include "collect/event_fields.hpp"

#include <algorithm>
#include <vector>

#include "base/nearest.hpp"

namespace ddprof {

namespace {

using Key = EventKey;

struct KeyName {
  std::string_view name;
  Key key;
};

constexpr auto kKeyNames = std::to_array<KeyName>({
    {"frequency", Key::frequency},
    {"freq", Key::frequency},
    {"f", Key::frequency},
    {"period", Key::period},
    {"per", Key::period},
    {"p", Key::period},
    {"mode", Key::mode},
    {"m", Key::mode},
    {"value_scale", Key::scale},
    {"scale", Key::scale},
    {"s", Key::scale},
    {"label", Key::label},
    {"l", Key::label},
    {"event", Key::event},
    {"eventname", Key::event},
    {"ev", Key::event},
    {"e", Key::event},
    {"group", Key::group},
    {"groupname", Key::group},
    {"gr", Key::group},
    {"g", Key::group},
    {"id", Key::id},
    {"i", Key::id},
    {"arg_num", Key::argument},
    {"argno", Key::argument},
    {"n", Key::argument},
    {"raw_offset", Key::raw_offset},
    {"rawoff", Key::raw_offset},
    {"o", Key::raw_offset},
    {"raw_size", Key::raw_size},
    {"rawsz", Key::raw_size},
    {"z", Key::raw_size},
    {"register", Key::register_number},
    {"regno", Key::register_number},
    {"r", Key::register_number},
    {"stack_sample_size", Key::stack_size},
    {"stcksz", Key::stack_size},
    {"st", Key::stack_size},
});

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r'; }
bool is_separator(char letter) { return is_space(letter) || letter == ','; }

Error unknown_key(std::string_view event, std::string_view key) {
  std::vector<std::string_view> names;
  for (const KeyName& entry : kKeyNames) {
    if (entry.name.size() > 2) names.push_back(entry.name);
  }
  return with_hint(event_error(event, "unknown key {}{}", key, did_you_mean(key, names)), "ddprof -e help");
}

// Takes words and key=value pairs from the front of one event's text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() {
    skip(is_separator);
    return rest_.empty();
  }

  std::string_view word() {
    const auto end =
        std::find_if(rest_.begin(), rest_.end(), [](char c) { return is_separator(c) || c == '='; });
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    const std::string_view result = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return result;
  }

  // True, and past it, when an equals sign comes next; spaces around it are fine.
  bool take_equals() {
    const std::string_view before = rest_;
    skip(is_space);
    if (rest_.empty() || rest_.front() != '=') {
      rest_ = before;
      return false;
    }
    rest_.remove_prefix(1);
    skip(is_space);
    return true;
  }

 private:
  void skip(bool (*matches)(char)) {
    while (!rest_.empty() && matches(rest_.front())) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

std::optional<Key> find_key(std::string_view name) {
  const auto* found =
      std::find_if(kKeyNames.begin(), kKeyNames.end(), [&](const KeyName& k) { return k.name == name; });
  if (found == kKeyNames.end()) return std::nullopt;
  return found->key;
}

}  // namespace

std::string_view trim_event(std::string_view text) {
  while (!text.empty() && is_separator(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_separator(text.back())) text.remove_suffix(1);
  return text;
}

Result<EventFields> split_event(std::string_view text) {
  EventFields fields;
  Scanner scanner(text);
  while (!scanner.at_end()) {
    const std::string_view name = scanner.word();
    Key key = Key::event;
    std::string_view value = name;
    if (scanner.take_equals()) {
      const std::optional<Key> found = find_key(name);
      if (!found) return unknown_key(text, name);
      key = *found;
      value = scanner.word();
      if (value.empty()) return event_error(text, "{} has no value", name);
    }
    if (fields[key])
      return event_error(text, "\"{}\" and \"{}\" both say the same thing", *fields[key], value);
    fields[key] = value;
  }
  return fields;
}

}  // namespace ddprof
