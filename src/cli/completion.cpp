#include "cli/completion.hpp"

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "cli/option_value.hpp"
#include "collect/event_table.hpp"

namespace ddprof {

ValueKind value_kind(const OptionRow& row) {
  if (is_flag(row)) return ValueKind::nothing;
  if (row.name == "output") return ValueKind::profile;
  if (row.name == "pid") return ValueKind::process;
  if (row.value == "USER") return ValueKind::user;
  if (row.value == "DIR") return ValueKind::folder;
  for (const std::string_view name : {"FILE", "PATH", "SOCKET", "WHERE"}) {
    if (row.value == name) return ValueKind::file;
  }
  return known_words(row).empty() ? ValueKind::text : ValueKind::words;
}

std::vector<std::string_view> known_words(const OptionRow& row) {
  std::vector<std::string_view> words = words_of(row);
  if (row.name != "event") return words;
  words.emplace_back("help");
  for (const KnownEvent& event : known_events()) words.push_back(event.name);
  return words;
}

std::vector<std::string> spellings(const OptionRow& row) {
  std::vector<std::string> result;
  if (row.letter != 0) result.push_back(fmt::format("-{}", row.letter));
  result.push_back(fmt::format("--{}", row.name));
  if (default_of(row).starts_with("on")) result.push_back(fmt::format("--no-{}", row.name));
  return result;
}

std::string description_of(const OptionRow& row, std::string_view spelling) {
  const bool is_negated = spelling == fmt::format("--no-{}", row.name);
  return is_negated ? fmt::format("the opposite of --{}", row.name) : std::string(row.help);
}

std::vector<const OptionRow*> offered_options(Command command) {
  std::vector<const OptionRow*> rows = options_of(command, OptionLevel::extended);
  std::erase_if(rows, [](const OptionRow* row) { return !row->has_effect; });
  return rows;
}

std::string_view word_of(const CommandRow& row) { return row.name.empty() ? "ddprof" : row.name; }

std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      result += "'\\''";
    } else {
      result += letter;
    }
  }
  return result + '\'';
}

std::string filled_in(std::string_view text, const std::vector<Replacement>& replacements) {
  std::string result(text);
  for (const Replacement& replacement : replacements) {
    const std::string place = fmt::format("@{}@", replacement.name);
    for (std::size_t at = result.find(place); at != std::string::npos;
         at = result.find(place, at + replacement.text.size()))
      result.replace(at, place.size(), replacement.text);
  }
  return result;
}

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  const auto shells = std::to_array<std::string_view>({"bash", "zsh", "fish"});
  return make_error(ErrorCode::invalid_argument, "completion {}: no such shell here{}", shell,
                    did_you_mean(shell, shells));
}

}  // namespace ddprof
