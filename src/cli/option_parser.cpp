#include "cli/option_parser.hpp"

#include <algorithm>
#include <vector>

#include "cli/command_table.hpp"
#include "cli/command_words.hpp"
#include "cli/config_file.hpp"
#include "cli/option_rules.hpp"
#include "cli/option_table.hpp"
#include "cli/option_value.hpp"

namespace ddprof {

namespace {

constexpr const char* kDefaultConfig = "./ddprof.toml";

bool is_help(Command command) {
  switch (command) {
    case Command::version:
    case Command::help:
    case Command::help_command:
    case Command::help_extended:
    case Command::help_man:
    case Command::help_markdown:
    case Command::help_commands:
    case Command::help_events:
      return true;
    default:
      return false;
  }
}

// An empty variable counts as unset: container specs often pass VARIABLE= through.
std::optional<std::string> find_variable(const EnvironmentLookup& environment, std::string_view name) {
  if (name.empty()) return std::nullopt;
  std::optional<std::string> value = environment(std::string(name));
  if (value && value->empty()) return std::nullopt;
  return value;
}

struct ConfigChoice {
  std::string path;
  std::string asked_by;  // empty: by default, and the file need not exist
};

// Which file to read must be known before the layers are applied in order.
ConfigChoice choose_config(const CommandWords& words, const EnvironmentLookup& environment) {
  const std::size_t config = *find_option("config");
  for (auto it = words.assignments.rbegin(); it != words.assignments.rend(); ++it) {
    if (it->option == config) return {it->value, "--config"};
  }
  const std::string_view variable = option_table()[config].environment;
  if (auto value = find_variable(environment, variable)) return {*value, std::string(variable)};
  return {kDefaultConfig, {}};
}

Result<void> apply_config_entry(Options& options, const ConfigEntry& entry, const std::string& path) {
  const Origin origin{Origin::Kind::file, fmt::format("{}:{}", path, entry.line)};
  const std::optional<std::size_t> option = find_option(entry.key);
  if (!option || std::holds_alternative<std::monostate>(option_table()[*option].slot)) {
    return make_error(ErrorCode::invalid_argument, "{}: unknown option {}{}", origin.detail, entry.key,
                      did_you_mean_option(entry.key, "", Command::wrap));
  }
  const OptionRow& row = option_table()[*option];
  if (row.command_line_only || !belongs_to(row, Command::wrap)) {
    return make_error(ErrorCode::invalid_argument, "{}: {} belongs on the command line", origin.detail,
                      row.name);
  }
  const bool is_list = std::holds_alternative<std::vector<std::string> Options::*>(row.slot);
  if (!is_list && entry.values.size() != 1) {
    return make_error(ErrorCode::invalid_argument, "{}: {} takes one value", origin.detail, row.name);
  }
  for (const std::string& value : entry.values) TRY(set_option(options, *option, value, origin));
  return {};
}

Result<void> apply_config(Options& options, const ConfigChoice& choice, const FileReader& read_file) {
  auto text = read_file(choice.path);
  if (!text.ok()) {
    if (choice.asked_by.empty() && text.error().code == ErrorCode::not_found) return {};
    if (choice.asked_by.empty()) return std::move(text).error();
    return make_error(text.error().code, "{}: {}", choice.asked_by, text.error().message);
  }
  for (const ConfigEntry& entry : TRY(parse_config(*text, choice.path))) {
    TRY(apply_config_entry(options, entry, choice.path));
  }
  options.config = choice.path;
  return {};
}

Result<void> apply_environment(Options& options, const EnvironmentLookup& environment) {
  for (std::size_t option = 0; option < option_table().size(); ++option) {
    const OptionRow& row = option_table()[option];
    const std::optional<std::string> value = find_variable(environment, row.environment);
    if (!value) continue;
    TRY(set_option(options, option, *value, {Origin::Kind::environment, std::string(row.environment)}));
  }
  return {};
}

Result<void> apply_command_line(Options& options, const CommandWords& words) {
  for (const CommandWords::Assignment& assignment : words.assignments) {
    TRY(set_option(options, assignment.option, assignment.value, {Origin::Kind::command_line}));
  }
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<const char* const> args, const EnvironmentLookup& environment,
                              const FileReader& read_file) {
  CommandWords words = TRY(split_command_words(args));
  Options options;
  options.origins.resize(option_table().size());
  options.command = words.command;
  options.is_recording = words.command == Command::record;
  options.topic = words.topic;
  if (is_help(words.command)) return options;  // help is there even when the configuration is broken

  if (takes_files(words.command)) {
    options.files = std::move(words.positionals);
  } else {
    TRY(apply_config(options, choose_config(words, environment), read_file));
    TRY(apply_environment(options, environment));
    options.program = std::move(words.positionals);
  }
  TRY(apply_command_line(options, words));
  TRY(apply_option_rules(options));

  const bool was_meant_as_subcommand = options.command == Command::wrap && !options.program.empty() &&
                                       !words.has_double_dash && find_command(options.program[0]) != nullptr;
  if (was_meant_as_subcommand) {
    options.notices.push_back(fmt::format(
        "running a program called {0}; the subcommand is: ddprof {0} [options]", options.program[0]));
  }
  return options;
}

std::optional<Options> unprofiled_options(std::span<const char* const> args,
                                          const EnvironmentLookup& environment, const FileReader& read_file) {
  auto words = split_command_words(args);
  if (!words || words->command != Command::wrap || words->positionals.empty()) return std::nullopt;
  Options options;
  options.origins.resize(option_table().size());
  options.command = Command::wrap;
  options.enable = false;
  options.program = std::move(words->positionals);
  const ConfigChoice file = choose_config(*words, environment);
  std::vector<ConfigEntry> entries;
  if (auto text = read_file(file.path)) {
    auto parsed = parse_config(*text, file.path);
    if (!parsed) return std::nullopt;
    entries = std::move(parsed).value();
  } else if (text.error().code != ErrorCode::not_found) {
    return std::nullopt;
  }
  // Only what limits the program's rights is read again.
  for (const std::string_view name : {"switch-user", "drop-caps"}) {
    const std::size_t option = *find_option(name);
    for (const ConfigEntry& entry : entries) {
      if (find_option(entry.key) == option && !apply_config_entry(options, entry, file.path))
        return std::nullopt;
    }
    const auto variable = find_variable(environment, option_table()[option].environment);
    if (variable && !set_option(options, option, *variable, {Origin::Kind::environment})) return std::nullopt;
    for (const CommandWords::Assignment& assignment : words->assignments) {
      if (assignment.option == option &&
          !set_option(options, option, assignment.value, {Origin::Kind::command_line}))
        return std::nullopt;
    }
  }
  const bool has_other_target = std::any_of(
      words->assignments.begin(), words->assignments.end(), [](const CommandWords::Assignment& assignment) {
        return assignment.option == find_option("pid") || assignment.option == find_option("global");
      });
  return has_other_target ? std::nullopt : std::optional(std::move(options));
}

void hide_secret_arguments(std::span<char* const> args) {
  const std::vector<const char*> readable(args.begin(), args.end());
  const auto words = split_command_words(readable);
  if (!words) return;  // a misspelled option is an error, and nothing runs on
  for (const std::string_view secret : words->secrets) {
    // They are views of the arguments, which belong to the process.
    std::fill_n(const_cast<char*>(secret.data()), secret.size(), '*');
  }
}

}  // namespace ddprof
