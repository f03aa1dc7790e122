#include "cli/option_rules.hpp"

#include <algorithm>
#include <string_view>

#include "cli/completion.hpp"
#include "cli/option_table.hpp"
#include "export/datadog_body.hpp"
#include "net/tls.hpp"
#include "process/process_filter.hpp"

namespace ddprof {

namespace {

constexpr std::string_view kOriginalService = "myservice";

[[nodiscard]] Error usage_error(std::string_view message, std::string hint = {}) {
  return Error{ErrorCode::invalid_argument, std::string(message), std::move(hint)};
}

Result<void> choose_command(Options& options) {
  const bool has_program = !options.program.empty();
  const bool is_attached = is_attaching(options);
  TRY(check_attach(options));
  if (is_attached && has_program) {
    return usage_error(fmt::format("{}: a running process is profiled; {} cannot be started too",
                                   attach_text(options), options.program[0]),
                       "leave out -p or the program");
  }
  if (options.global && has_program) {
    return usage_error(
        fmt::format("-g: every process is profiled; {} cannot be started too", options.program[0]),
        "leave out -g or the program");
  }
  const bool has_target = has_program || is_attached || options.global;
  if (!has_target) {
    if (options.show_config || !options.capture_config.empty()) {
      options.command = Command::configuration;
      return {};
    }
    return usage_error("nothing to profile: name a program, -p PID, --container NAME or -g", "ddprof --help");
  }
  if (options.command == Command::record) return {};
  if (is_attached) options.command = Command::attach;
  if (options.global) options.command = Command::global;
  return {};
}

bool is_allocation(const EventSpec& event) { return event.kind == EventSpec::Kind::allocation; }

// Events by name win over those of a preset with the same name; a preset that was not asked for is only used
// when there are no events.
Result<std::vector<EventSpec>> gather_events(const Options& options) {
  std::vector<EventSpec> events;
  for (const std::string& text : options.event_texts) {
    for (EventSpec& event : TRY(parse_events(text))) events.push_back(std::move(event));
  }
  const bool preset_is_default = origin_of(options, "preset").kind == Origin::Kind::default_value;
  if (preset_is_default && !events.empty()) return events;
  const bool is_running = (is_attaching(options) || options.global) && options.controlled != "hooked";
  for (EventSpec& event : TRY(preset_events(options.preset, is_running))) {
    const bool is_given = std::any_of(events.begin(), events.end(),
                                      [&](const EventSpec& other) { return other.name == event.name; });
    if (!is_given) events.push_back(std::move(event));
  }
  return events;
}

// What was typed is answered before anything runs; what stands in a file or in the environment of a whole
// cluster, with the other notices.
void say_what_is_in_vain(Options& options, std::string_view name, std::string text) {
  const bool is_typed = origin_of(options, name).kind == Origin::Kind::command_line;
  (is_typed ? options.warnings : options.notices).push_back(std::move(text));
}

// A program that runs already has no library of ours, unless it says so.
Result<void> check_allocations(Options& options) {
  const bool is_running = is_attaching(options) || options.global;
  if (!is_running || options.controlled == "hooked" || std::erase_if(options.events, is_allocation) == 0)
    return {};
  const bool is_preset = origin_of(options, "preset").kind != Origin::Kind::default_value;
  const std::string source = is_preset ? fmt::format("preset {}", options.preset) : "event sALLOC";
  const bool is_bare = options.controlled == "bare";
  const std::string_view why = is_bare ? "allocations do not pass libddprof.so, which was loaded too late"
                                       : "allocations of a program that runs already cannot be sampled";
  if (options.events.empty())
    return Error{
        ErrorCode::unsupported, fmt::format("{}: {}", source, why),
        is_bare ? "link the program with it, or LD_PRELOAD=libddprof.so" : "start the program with ddprof"};
  say_what_is_in_vain(options, is_preset ? "preset" : "event",
                      fmt::format("{}: {}; profiling the rest", source, why));
  return {};
}

// -F is short for the CPU event's frequency. An event whose text comes from a stronger source keeps a rate of
// its own.
Result<void> apply_frequency(Options& options) {
  if (!options.frequency) return {};
  const Origin& origin = origin_of(options, "frequency");
  const bool is_stronger = origin.kind >= origin_of(options, "event").kind;
  const EventSpec standard = default_cpu_event();
  bool has_clock = false;
  for (EventSpec& event : options.events) {
    if (!event.is_clock) continue;
    has_clock = true;
    if (!is_stronger && event.frequency != standard.frequency) continue;
    event.frequency = static_cast<std::uint64_t>(*options.frequency);
    event.period = 0;
  }
  if (!has_clock && origin.kind == Origin::Kind::command_line) {
    return usage_error("--frequency: sets the rate of CPU time, which is not among the events",
                       "give each event its own rate: -e 'hINST f=199'");
  }
  return {};
}

Result<void> choose_events(Options& options) {
  options.events = TRY(gather_events(options));
  TRY(check_allocations(options));
  return apply_frequency(options);
}

std::string file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

// The original calls every service "myservice"; the program's name says more. A process that is attached to
// gets its name from /proc, later.
void choose_service(Options& options) {
  Origin& origin = options.origins[*find_option("service")];
  if (!options.service.empty()) return;
  if (!options.program.empty()) {
    options.service = file_name(options.program[0]);
    origin.detail = "the program's name";
  } else if (is_attaching(options)) {
    origin.detail = "the process's name";
  } else {
    options.service = kOriginalService;
  }
}

Result<void> check_duration(const Options& options) {
  const bool is_wrong = options.command == Command::wrap && options.duration_seconds &&
                        origin_of(options, "duration").kind == Origin::Kind::command_line;
  if (!is_wrong) return {};
  return usage_error("--duration: the wrapped program decides when it ends",
                     "use it with -p, -g or: ddprof record --duration SECONDS program");
}

// Two names of one setting: the one from the stronger source counts.
Result<void> choose_period(Options& options) {
  if (!options.period_seconds) return {};
  const Origin::Kind given = origin_of(options, "period").kind;
  Origin& usual = options.origins[*find_option("upload-period")];
  if (usual.kind > given) return {};
  const bool are_both_typed = usual.kind == Origin::Kind::command_line;
  if (are_both_typed && *options.period_seconds != options.upload_period_seconds)
    return usage_error("--period and --upload-period: two names of one setting, with different values",
                       "leave one out");
  options.upload_period_seconds = *options.period_seconds;
  usual = origin_of(options, "period");
  return {};
}

// As with addresses: what was typed must be right.
Result<void> check_cpu_duration(Options& options) {
  const std::int64_t period = options.upload_period_seconds;
  if (options.cpu_duration_seconds.value_or(0) <= period) return {};
  const Origin& origin = origin_of(options, "cpu-duration");
  if (origin.kind == Origin::Kind::command_line)
    return usage_error(fmt::format("--cpu-duration {}: longer than the period, which is {} s",
                                   *options.cpu_duration_seconds, period),
                       "a longer --period, or leave it out: all of a period is sampled then");
  options.notices.push_back(fmt::format("{} is left alone: {} s is longer than the period, which is {} s",
                                        origin.detail, *options.cpu_duration_seconds, period));
  options.cpu_duration_seconds.reset();
  return {};
}

Result<void> check_privileges(const Options& options) {
  if (options.drop_caps && options.global)
    return usage_error("--drop-caps: -g looks at processes of others, which needs capabilities",
                       "start it with only those that docs/permissions.md names");
  const bool is_wrong = options.program.empty() && !options.switch_user.empty() &&
                        origin_of(options, "switch-user").kind == Origin::Kind::command_line;
  if (!is_wrong) return {};
  return usage_error("--switch-user: is for a program that ddprof starts", "leave it out with -p and -g");
}

Result<void> check_filters(const Options& options) {
  for (const std::string_view name : {"include", "exclude"}) {
    const bool is_typed = origin_of(options, name).kind == Origin::Kind::command_line;
    if (is_typed && !options.global)
      return usage_error(fmt::format("--{}: chooses among the processes of the whole host", name),
                         "use it with -g");
  }
  if (auto filter = ProcessFilter::parse(options.include, options.exclude); !filter)
    return std::move(filter).error();
  return {};
}

// One that was typed must be right. With a wrong one in the environment the program runs all the same,
// and no upload trusts other authorities in its place.
Result<void> check_ca_file(Options& options) {
  if (options.ca_file.empty()) return {};
  auto checked = check_certificate_file(options.ca_file);
  if (checked) return {};
  const Origin& origin = origin_of(options, "ca-file");
  if (origin.kind == Origin::Kind::command_line)
    return usage_error("--ca-file: " + checked.error().message, "a file of certificates in the form of PEM");
  options.notices.push_back(fmt::format("{}: {}", origin.detail, checked.error().message));
  return {};
}

void check_tags(Options& options) {
  const std::vector<std::string> refused = DatadogTags().add_all(options.tags);
  if (refused.empty()) return;
  options.notices.push_back(fmt::format(
      "not tags, and left out: {}; they are key:value and begin with a letter", fmt::join(refused, ", ")));
}

Result<void> check_convert(const Options& options) {
  const std::string example = "ddprof convert cpu.pprof cpu.speedscope.json";
  if (options.files.size() != 2)
    return usage_error("convert: needs a file to read and one to write", example);
  if (options.files[1] == "-" && options.to.empty())
    return usage_error("convert: writing to a pipe needs a format", "ddprof convert IN - --to folded");
  return {};
}

Result<void> check_list(const Options& options) {
  if (options.files.size() <= 1) return {};
  return usage_error("list: takes one folder", "ddprof list [DIR]");
}

Result<void> check_completion(const Options& options) {
  const std::string example = "ddprof completion bash | zsh | fish";
  if (options.files.size() != 1) return usage_error("completion: needs the name of a shell", example);
  auto script = completion_script(options.files[0]);
  return script ? Result<void>() : Result<void>(with_hint(std::move(script).error(), example));
}

Result<void> check_doctor(const Options& options) {
  if (options.program.empty()) return {};
  return usage_error("doctor: looks at this machine, not at programs or files", "ddprof doctor");
}

// Scripts for the original set these; who sets one should not wait for what it did there.
void tell_what_has_no_effect(Options& options) {
  for (std::size_t option = 0; option < options.origins.size(); ++option) {
    const OptionRow& row = option_table()[option];
    const Origin& origin = options.origins[option];
    if (row.has_effect || origin.kind == Origin::Kind::default_value) continue;
    const bool is_typed = origin.kind == Origin::Kind::command_line;
    const std::string place = is_typed ? "" : fmt::format(" ({})", origin.detail);
    say_what_is_in_vain(options, row.name, fmt::format("--{}{} {}", row.name, place, kNoEffectNote));
  }
}

}  // namespace

Result<void> apply_option_rules(Options& options) {
  if (options.command == Command::report) return {};
  if (options.command == Command::list) return check_list(options);
  if (options.command == Command::convert) return check_convert(options);
  if (options.command == Command::completion) return check_completion(options);
  if (options.command == Command::doctor) return check_doctor(options);
  TRY(choose_command(options));
  TRY(choose_events(options));
  TRY(check_duration(options));
  TRY(choose_period(options));
  TRY(check_cpu_duration(options));
  TRY(check_privileges(options));
  TRY(check_filters(options));
  TRY(check_intake(options));
  TRY(check_agent_url(options));
  TRY(check_ca_file(options));
  check_tags(options);
  choose_service(options);
  TRY(check_otlp(options));
  TRY(check_pyroscope(options));
  tell_what_has_no_effect(options);
  return {};
}

}  // namespace ddprof
