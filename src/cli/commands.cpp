#include "cli/commands.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "base/output_file.hpp"
#include "cli/command_table.hpp"
#include "cli/completion.hpp"
#include "cli/config_file.hpp"
#include "cli/help.hpp"
#include "cli/journal.hpp"
#include "cli/option_rules.hpp"
#include "cli/option_table.hpp"
#include "cli/profiling_request.hpp"
#include "cli/show_config.hpp"
#include "cli/stored_profiles.hpp"
#include "cli/terminal.hpp"
#include "cli/user_folder.hpp"
#include "encode/output_format.hpp"
#include "export/destinations.hpp"
#include "profile/profile_view.hpp"
#include "runtime/call_apart.hpp"
#include "runtime/program.hpp"
#include "runtime/recorder.hpp"
#include "runtime/standard_streams.hpp"
#include "runtime/wrapper.hpp"

namespace ddprof {

namespace {

Result<OutputFormat> wanted_format(const Options& options) {
  return options.to.empty() ? output_format(options.files[1]) : output_format_by_name(options.to);
}

Result<void> write_converted(const std::string& path, const std::string& content) {
  if (path != "-") return write_output(path, content);
  const bool is_written =
      std::fwrite(content.data(), 1, content.size(), stdout) == content.size() && std::fflush(stdout) == 0;
  return is_written ? Result<void>() : errno_error(errno, "write standard output");
}

Result<void> convert_file(const Options& options) {
  // A format that does not exist is said before a large file is read.
  const OutputFormat format = TRY(wanted_format(options));
  const Profile profile = TRY(load_profile(options.files[0]));
  const std::string content = TRY(encode(profile, format));
  return write_converted(options.files[1], content);
}

}  // namespace

int convert(const Options& options) {
  const auto converted = convert_file(options);
  if (converted) return 0;
  say_error(converted.error());
  return 1;
}

namespace {

int print_completion(const Options& options) {
  auto script = completion_script(options.files.front());
  if (script) return print_output(*script);
  say_error(script.error());
  return kExitUsage;
}

// A program that does not exist may be a command, mistyped.
std::optional<int> refuse_mistyped_command(const Options& options) {
  if (options.command != Command::wrap) return std::nullopt;
  const std::string& word = options.program[0];
  const std::string suggestion = did_you_mean_command(word);
  if (suggestion.empty() || word.find('/') != std::string::npos) return std::nullopt;
  auto found = find_program(word);
  if (found || found.error().code != ErrorCode::not_found) return std::nullopt;
  say_error(
      with_hint(make_error(ErrorCode::not_found, "{}{}", found.error().message, suggestion), "ddprof help"));
  return exit_status_of(found.error());
}

// What was typed and does nothing is answered at once; it would be missed in a summary.
void say_warnings(const Options& options) {
  if (options.quiet || options.log_mode == "disabled" || !options.controlled.empty()) return;
  for (const std::string& warning : options.warnings) say_text(fmt::format("ddprof: {}\n", warning));
}

int exec_unprofiled(const Options& options) {
  if (auto refused = refuse_to_run(options.program[0], privilege_limits(options), say_error)) return *refused;
  return exec_limited(options.program, privilege_limits(options), say_error);
}

Result<void> write_captured_config(const Options& options) {
  if (options.capture_config.empty()) return {};
  return write_output(options.capture_config, capture_config(options));
}

constexpr std::chrono::milliseconds kPlacePatience(2000);

// What the user has to correct, before anything is started.
Result<void> check_places(const Options& options) {
  const auto checked = ask_file_system(kPlacePatience, [&] { return check_output(options); });
  if (!checked)
    return does_not_answer("write " + (options.output.empty() ? options.working_directory : options.output));
  if (!*checked) return checked->error();
  return Journal(options, options.working_directory).check();
}

// Without a spool on a file system that hangs.
Options with_possible_spool(Options options) {
  const auto checked = ask_file_system(kPlacePatience, [&] { return check_spool(options); });
  if (checked && (checked->ok() || checked->error().code != ErrorCode::exhausted)) return options;
  say_error(with_hint(checked ? checked->error() : does_not_answer("open the folder of requests that wait"),
                      "--spool-dir DIR; until then, what cannot be delivered is lost"));
  options.spool_dir = "none";
  return options;
}

// A service that is wrapped runs without the log that it cannot have.
Options with_possible_log(Options options) {
  auto possible = Journal(options, options.working_directory).check();
  if (possible) return options;
  possible.error().message += "; the log goes to standard error";
  say_error(possible.error());
  options.log_mode = "stderr";
  return options;
}

// What destinations need to know of where ddprof was started, and on what.
Options with_surroundings(Options options) {
  options.working_directory = working_directory();
  options.state_folder = user_folder("XDG_STATE_HOME", ".local/state");
  options.target_name = options.global ? "host" : options.attached.name;
  if (!options.program.empty()) options.target_name = base_name(options.program.front());
  return options;
}

int run_profiling(const Options& given) {
  bool has_program = !given.program.empty();
  if (auto refused = has_program ? refuse_mistyped_command(given) : std::nullopt) return *refused;
  if (!given.enable && has_program) return exec_unprofiled(given);
  if (!given.enable) {
    if (!given.controlled.empty())
      say_error(make_error(ErrorCode::unsupported, "profiling is switched off: {}",
                           origin_of(given, "enable").detail));
    return 0;
  }
  say_warnings(given);
  Options options = with_surroundings(given);
  const auto settled = settle_output(options);
  if (!settled && has_program) {
    Error error = settled.error();
    error.message.insert(0, "running without profiling: ");
    say_error(error);
    return exec_unprofiled(options);
  }
  if (!settled) {
    say_error(settled.error());
    return kExitUsage;
  }
  if (options.command == Command::wrap) {
    options = with_possible_log(options);
  } else if (auto possible = check_places(options); !possible) {
    say_error(possible.error());
    return kExitUsage;
  } else {
    options = with_possible_spool(options);
  }
  ProfilingRequest request = make_profiling_request(options);
  if (options.command == Command::wrap) return run_wrapped(options.program, std::move(request));
  if (has_program) return run_recorded(options.program, std::move(request));
  return run_attached(running_target(options), std::move(request));
}

int find_and_profile(Options options) {
  if (is_attaching(options) && options.enable) {
    auto choice = choose_processes(options, ProcessSearch());
    if (!choice) {
      say_error(choice.error());
      return 1;
    }
    options.attached = std::move(choice).value();
  }
  return run_profiling(options);
}

}  // namespace

int run_command(const Options& options) {
  switch (options.command) {
    case Command::version:
      return print_output(version_text());
    case Command::help:
      return print_output(help_overview(text_width()));
    case Command::help_command:
      return print_output(command_help(options.topic, OptionLevel::basic, text_width()));
    case Command::help_extended:
      return print_output(command_help(options.topic, OptionLevel::extended, text_width()));
    case Command::help_man:
      return print_output(man_page(options.topic));
    case Command::help_commands:
      return print_output(command_words_text());
    case Command::help_markdown:
      return print_output(commands_markdown());
    case Command::help_events:
      return print_output(events_help());
    case Command::report:
      return report(options);
    case Command::list:
      return list(options);
    case Command::convert:
      return convert(options);
    case Command::completion:
      return print_completion(options);
    case Command::doctor:
      return doctor(options);
    default:
      break;
  }
  if (auto written = write_captured_config(options); !written) {
    say_error(written.error());
    return 1;
  }
  Options complete = options;
  find_agent(complete, agent_probe());
  choose_timeline(complete);
  const int printed = options.show_config ? print_output(show_config(with_automatic_values(complete))) : 0;
  if (options.command == Command::configuration) return printed;  // else the program runs in any case
  return find_and_profile(std::move(complete));
}

}  // namespace ddprof
