#include "cli/option_description.hpp"

#include <array>

#include "cli/option_value.hpp"

namespace ddprof {

namespace {

constexpr auto kGroups =
    std::to_array<OptionGroup>({OptionGroup::target, OptionGroup::sampling, OptionGroup::output,
                                OptionGroup::identity, OptionGroup::upload, OptionGroup::profiler,
                                OptionGroup::report, OptionGroup::convert, OptionGroup::configuration});

bool is_boolean(const OptionRow& row) { return std::holds_alternative<bool Options::*>(row.slot); }

}  // namespace

std::span<const OptionGroup> option_groups() { return kGroups; }

std::string default_of(const OptionRow& row) {
  if (!row.default_note.empty()) return std::string(row.default_note);
  if (is_boolean(row)) return option_text(Options{}, row) == "true" ? "on" : "";
  return option_text(Options{}, row);
}

std::string long_form(const OptionRow& row) {
  const bool is_on = is_boolean(row) && default_of(row).starts_with("on");
  const std::string value = row.value.empty() ? std::string() : fmt::format(" {}", row.value);
  return fmt::format("--{}{}{}", is_on ? "[no-]" : "", row.name, value);
}

std::vector<std::string_view> words_of(const OptionRow& row) {
  std::vector<std::string_view> words = split_words(row.choices);
  for (const std::string_view word : split_words(row.suggestions)) words.push_back(word);
  return words;
}

std::string meaning_of(const OptionRow& row) {
  const std::vector<std::string_view> words = words_of(row);
  if (words.empty()) return std::string(row.help);
  return fmt::format("{}: {}", row.help, fmt::join(words, ", "));
}

std::vector<const OptionRow*> options_of(Command command, OptionLevel deepest) {
  std::vector<const OptionRow*> rows;
  for (const OptionGroup group : kGroups) {
    for (const OptionRow& row : option_table()) {
      const bool is_offered = row.has_effect || deepest != OptionLevel::basic;
      const bool is_listed = row.group == group && row.level <= deepest && is_offered;
      if (is_listed && belongs_to(row, command)) rows.push_back(&row);
    }
  }
  return rows;
}

}  // namespace ddprof
