#include "cli/command_words.hpp"

#include <cctype>
#include <optional>
#include <string_view>

#include "cli/command_table.hpp"
#include "cli/option_table.hpp"
#include "cli/option_value.hpp"

namespace ddprof {

namespace {

// The options of a command that has few; nothing for the others, whose help is long.
std::string all_options_of(Command command) {
  constexpr std::size_t kFew = 24;
  std::vector<std::string> names;
  for (const OptionRow* row : options_of(command, OptionLevel::basic)) {
    const bool is_setting = !std::holds_alternative<std::monostate>(row->slot);
    if (is_setting) names.push_back(fmt::format("--{}", row->name));
  }
  return names.empty() || names.size() > kFew ? std::string()
                                              : fmt::format("; it has {}", fmt::join(names, ", "));
}

std::string help_line(Command command) {
  return command == Command::wrap ? "ddprof --help-extended" : full_name(command) + " --help";
}

Error unknown_option(std::string_view written, std::string_view name, Command command) {
  std::string suggestion = did_you_mean_option(name, "--", command);
  if (suggestion.empty()) suggestion = all_options_of(command);
  const std::string owner = command == Command::wrap ? "" : fmt::format(" of {}", full_name(command));
  return with_hint(
      make_error(ErrorCode::invalid_argument, "unknown option {}{}{}", written, owner, suggestion),
      help_line(command));
}

// An option that the command does not have, and what does.
Error foreign_option(const OptionRow& row, Command command) {
  std::vector<std::string> owners;
  for (const CommandRow& owner : command_table()) {
    if (owner.command && belongs_to(row, *owner.command)) owners.push_back(full_name(owner));
  }
  return with_hint(make_error(ErrorCode::invalid_argument, "--{}: an option of {}, not of {}", row.name,
                              fmt::join(owners, " and "), full_name(command)),
                   help_line(command));
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
      } else if (takes_files(words_.topic)) {
        words_.positionals.emplace_back(args_[position_++]);  // options may follow a file
      } else {
        take_the_rest();
      }
    }
    TRY(choose_help());
    return std::move(words_);
  }

 private:
  Result<void> take_subcommand() {
    if (args_.empty()) return {};
    const CommandRow* row = find_command(args_[0]);
    if (row == nullptr) return {};
    if (!row->command) return reserved_word_error(*row);
    words_.command = words_.topic = *row->command;
    ++position_;
    return {};
  }

  // ddprof help COMMAND is ddprof COMMAND --help; and so is ddprof --help COMMAND.
  Result<void> choose_help() {
    const bool is_word = words_.topic == Command::help;
    const bool has_topic = is_word && !words_.positionals.empty();
    if (has_topic && words_.positionals.size() > 1)
      return make_error(ErrorCode::invalid_argument, "help: takes one command");
    if (has_topic) words_.topic = TRY(help_topic(words_.positionals[0]));
    if (words_.command != Command::help) return {};
    if (words_.topic == Command::wrap && !is_word && !words_.positionals.empty())
      words_.topic = help_topic(words_.positionals[0]).value_or(Command::wrap);
    const bool is_overview = is_word ? !has_topic && !is_help_asked_for_ : words_.topic == Command::wrap;
    if (!is_overview) words_.command = Command::help_command;
    return {};
  }

  static Result<Command> help_topic(std::string_view word) {
    if (word == "ddprof") return Command::wrap;
    const CommandRow* row = find_command(word);
    if (row == nullptr)
      return with_hint(
          make_error(ErrorCode::invalid_argument, "help: no command {}{}", word, did_you_mean_command(word)),
          "ddprof help");
    if (!row->command) return reserved_word_error(*row);
    return *row->command;
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
      if (!belongs_to(option_table()[*option], words_.topic))
        return foreign_option(option_table()[*option], words_.topic);
      words_.assignments.push_back({*option, "false"});
      return {};
    }
    return unknown_option(fmt::format("--{}", name), name, words_.topic);
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
      if (!option) return unknown_option(written, word.substr(at), words_.topic);
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
      is_help_asked_for_ = row.command == Command::help;
      return {};
    }
    if (!belongs_to(row, words_.topic)) return foreign_option(row, words_.topic);
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
  bool is_help_asked_for_ = false;
  CommandWords words_;
};

}  // namespace

Result<CommandWords> split_command_words(std::span<const char* const> args) { return Splitter(args).split(); }

}  // namespace ddprof
