#include "cli/command_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include "cli/option_table.hpp"
#include "cli/option_value.hpp"

namespace ddprof {

namespace {

struct Subcommand {
  std::string_view name;
  std::optional<Command> command;  // empty: reserved for a later version
};

constexpr std::array<Subcommand, 7> kSubcommands = {{
    {"record", Command::record},
    {"report", Command::report},
    {"convert", Command::convert},
    {"view", std::nullopt},
    {"diff", std::nullopt},
    {"serve", std::nullopt},
    {"doctor", Command::doctor},
}};

const Subcommand* find_subcommand(std::string_view word) {
  const auto* found = std::find_if(kSubcommands.begin(), kSubcommands.end(),
                                   [&](const Subcommand& entry) { return entry.name == word; });
  return found == kSubcommands.end() ? nullptr : found;
}

Error unknown_option(std::string_view written, std::string_view name) {
  Error error = make_error(ErrorCode::invalid_argument, "unknown option {}{}", written,
                           did_you_mean_option(name, "--"));
  return with_hint(std::move(error), "ddprof --help");
}

// A word that looks like another option is almost always a forgotten value; "-" and "-5" are values.
bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

class Splitter {
 public:
  explicit Splitter(std::span<const char* const> args) : args_(args) {}

  Result<CommandWords> split() {
    TRY(take_subcommand());
    while (position_ < args_.size()) {
      const std::string_view word = args_[position_];
      if (word == "--") {
        words_.has_double_dash = true;
        ++position_;
        take_the_rest();
      } else if (word.starts_with("--")) {
        TRY(take_long(word));
      } else if (word.size() > 1 && word[0] == '-') {
        TRY(take_letters(word));
      } else if (reads_files(words_.command)) {
        words_.positionals.emplace_back(args_[position_++]);  // options may follow a file
      } else {
        take_the_rest();
      }
    }
    return std::move(words_);
  }

 private:
  Result<void> take_subcommand() {
    if (args_.empty()) return {};
    const Subcommand* subcommand = find_subcommand(args_[0]);
    if (subcommand == nullptr) return {};
    if (!subcommand->command) {
      return with_hint(make_error(ErrorCode::unsupported, "{}: not in this version", subcommand->name),
                       fmt::format("to run a program called {0}: ddprof -- {0}", subcommand->name));
    }
    words_.command = *subcommand->command;
    ++position_;
    return {};
  }

  void take_the_rest() {
    for (; position_ < args_.size(); ++position_) words_.positionals.emplace_back(args_[position_]);
  }

  Result<void> take_long(std::string_view word) {
    ++position_;
    std::string_view name = word.substr(2);
    std::optional<std::string_view> value;
    if (const std::size_t equals = name.find('='); equals != std::string_view::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    if (const std::optional<std::size_t> option = find_option(name)) return take_value(*option, word, value);
    if (const std::optional<std::size_t> option = find_negated(name)) {
      if (value) return make_error(ErrorCode::invalid_argument, "--{}: takes no value", name);
      words_.assignments.push_back({*option, "false"});
      return {};
    }
    return unknown_option(fmt::format("--{}", name), name);
  }

  // --no-timeline
  static std::optional<std::size_t> find_negated(std::string_view name) {
    if (!name.starts_with("no-") && !name.starts_with("no_")) return std::nullopt;
    const std::optional<std::size_t> option = find_option(name.substr(3));
    if (!option || !std::holds_alternative<bool Options::*>(option_table()[*option].slot))
      return std::nullopt;
    return option;
  }

  // -p 12, -p12, and flags run together: -gI
  Result<void> take_letters(std::string_view word) {
    ++position_;
    for (std::size_t at = 1; at < word.size(); ++at) {
      const std::string written = fmt::format("-{}", word[at]);
      const std::optional<std::size_t> option = find_option(word[at]);
      if (!option) return unknown_option(written, word.substr(at));
      const OptionRow& row = option_table()[*option];
      const std::string_view rest = word.substr(at + 1);
      if (rest.empty()) return take_value(*option, written, std::nullopt);
      if (!is_flag(row) || (row.takes_word && parse_boolean(rest))) return take_value(*option, written, rest);
      TRY(take_value(*option, written,
                     is_setting(row) ? std::optional<std::string_view>("true") : std::nullopt));
    }
    return {};
  }

  static bool is_setting(const OptionRow& row) { return !std::holds_alternative<std::monostate>(row.slot); }

  Result<void> take_value(std::size_t option, std::string_view written,
                          std::optional<std::string_view> value) {
    const OptionRow& row = option_table()[option];
    if (!is_setting(row)) {
      if (value) return make_error(ErrorCode::invalid_argument, "--{}: takes no value", row.name);
      words_.command = row.command;
      return {};
    }
    if (!value) value = is_flag(row) ? flag_word(row) : TRY(next_word(row, written));
    if (row.name == "event" && *value == "help") words_.command = Command::help_events;
    if (row.is_secret) words_.secrets.push_back(*value);
    words_.assignments.push_back({option, std::string(*value)});
    return {};
  }

  // The original wants a value after these flags ("-I true"); only a word that can be nothing else is taken
  // as one.
  std::string_view flag_word(const OptionRow& row) {
    if (!row.takes_word || position_ == args_.size() || !parse_boolean(args_[position_])) return "true";
    return args_[position_++];
  }

  Result<std::string_view> next_word(const OptionRow& row, std::string_view written) {
    if (position_ == args_.size()) {
      return make_error(ErrorCode::invalid_argument, "{}: needs a value ({})", written, row.value);
    }
    const std::string_view word = args_[position_];
    if (looks_like_option(word)) {
      Error error = make_error(ErrorCode::invalid_argument, "{}: needs a value ({}), but {} follows", written,
                               row.value, word);
      return with_hint(std::move(error), fmt::format("if {0} is the value, write --{1}={0}", word, row.name));
    }
    ++position_;
    return word;
  }

  std::span<const char* const> args_;
  std::size_t position_ = 0;
  CommandWords words_;
};

}  // namespace

Result<CommandWords> split_command_words(std::span<const char* const> args) { return Splitter(args).split(); }

bool is_subcommand_name(std::string_view word) { return find_subcommand(word) != nullptr; }

}  // namespace ddprof
