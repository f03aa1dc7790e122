#include "cli/option_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "base/nearest.hpp"

namespace ddprof {

namespace {

using Texts = std::vector<std::string>;

// How an error names the value: as the user wrote it, in the place where it was written.
std::string written_as(const OptionRow& row, std::string_view text, const Origin& origin) {
  const std::string_view shown = row.is_secret ? "***" : text;
  switch (origin.kind) {
    case Origin::Kind::file:
      return fmt::format("{}: {} = {}", origin.detail, row.name, shown);
    case Origin::Kind::environment:
      return fmt::format("{}={}", origin.detail, shown);
    default:
      return fmt::format("--{} {}", row.name, shown);
  }
}

Error value_error(const OptionRow& row, std::string_view text, const Origin& origin, std::string_view cause) {
  return make_error(ErrorCode::invalid_argument, "{}: must be {}", written_as(row, text, origin), cause);
}

std::string number_rule(const OptionRow& row) {
  if (row.multiple > 1) return fmt::format("a multiple of {} up to {}", row.multiple, row.high);
  const bool has_high = row.high != std::numeric_limits<std::int64_t>::max();
  if (has_high) return fmt::format("a whole number from {} to {}", row.low, row.high);
  return fmt::format("a whole number, {} or more", row.low);
}

Result<std::int64_t> parse_number(const OptionRow& row, std::string_view text, const Origin& origin) {
  std::int64_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = failure == std::errc() && stop == text.data() + text.size();
  if (!is_number || number < row.low || number > row.high || number % row.multiple != 0) {
    return value_error(row, text, origin, number_rule(row));
  }
  return number;
}

Result<std::size_t> parse_choice(const OptionRow& row, std::string_view text, const Origin& origin) {
  const std::vector<std::string_view> words = split_words(row.choices);
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) {
    return value_error(row, text, origin,
                       fmt::format("one of {}{}", fmt::join(words, ", "), did_you_mean(text, words)));
  }
  return static_cast<std::size_t>(found - words.begin());
}

bool is_hexadecimal(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

Result<void> check_text(const OptionRow& row, std::string_view text, const Origin& origin) {
  const std::vector<std::string_view> hidden = split_words(row.hidden_choices);
  const bool is_hidden = std::any_of(hidden.begin(), hidden.end(),
                                     [&](std::string_view word) { return text.starts_with(word); });
  if (!row.choices.empty() && !is_hidden) {
    if (auto choice = parse_choice(row, text, origin); !choice.ok()) return std::move(choice).error();
  }
  if (row.is_hexadecimal && !text.empty() && !is_hexadecimal(text)) {
    return value_error(row, text, origin, "a hexadecimal mask with at least one CPU, such as 0x3");
  }
  return {};
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

std::optional<bool> parse_boolean(std::string_view text) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (const char* yes : {"true", "yes", "on", "1", "enable"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"false", "no", "off", "0", "disable"}) {
    if (word == no) return false;
  }
  return std::nullopt;
}

Result<void> set_option(Options& options, std::size_t index, std::string_view text, const Origin& origin) {
  const OptionRow& row = option_table()[index];
  if (options.origins.size() < option_table().size()) options.origins.resize(option_table().size());
  const bool replaces = options.origins[index].kind != origin.kind;
  const auto store = [&](auto member) -> Result<void> {
    using Member = decltype(member);
    if constexpr (std::is_same_v<Member, bool Options::*>) {
      const std::optional<bool> value = parse_boolean(text);
      if (!value) return value_error(row, text, origin, "true or false");
      options.*member = *value;
    } else if constexpr (std::is_same_v<Member, std::string Options::*>) {
      TRY(check_text(row, text, origin));
      options.*member = text;
    } else if constexpr (std::is_same_v<Member, std::int64_t Options::*> ||
                         std::is_same_v<Member, std::optional<std::int64_t> Options::*>) {
      options.*member = TRY(parse_number(row, text, origin));
    } else if constexpr (std::is_same_v<Member, Texts Options::*>) {
      if (replaces) (options.*member).clear();
      (options.*member).emplace_back(text);
    } else if constexpr (std::is_same_v<Member, std::monostate>) {
      return make_error(ErrorCode::invalid_argument, "{}: not a setting", written_as(row, text, origin));
    } else {
      using Enum = std::remove_reference_t<decltype(options.*member)>;
      options.*member = static_cast<Enum>(TRY(parse_choice(row, text, origin)));
    }
    return {};
  };
  TRY(std::visit(store, row.slot));
  options.origins[index] = origin;
  if (!options.is_given(row.name)) options.given.push_back(row.name);
  return {};
}

std::string option_text(const Options& options, const OptionRow& row) {
  const auto show = [&](auto member) -> std::string {
    using Member = decltype(member);
    if constexpr (std::is_same_v<Member, bool Options::*>) {
      return options.*member ? "true" : "false";
    } else if constexpr (std::is_same_v<Member, std::string Options::*>) {
      return options.*member;
    } else if constexpr (std::is_same_v<Member, std::int64_t Options::*>) {
      return std::to_string(options.*member);
    } else if constexpr (std::is_same_v<Member, std::optional<std::int64_t> Options::*>) {
      return options.*member ? std::to_string(*(options.*member)) : std::string();
    } else if constexpr (std::is_same_v<Member, Texts Options::*>) {
      return fmt::format("{}", fmt::join(options.*member, "; "));
    } else if constexpr (std::is_same_v<Member, std::monostate>) {
      return {};
    } else {
      return std::string(split_words(row.choices)[static_cast<std::size_t>(options.*member)]);
    }
  };
  return std::visit(show, row.slot);
}

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
