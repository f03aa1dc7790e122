#include "cli/profiling_request.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "cli/journal.hpp"
#include "cli/option_table.hpp"
#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "cli/user_folder.hpp"
#include "collect/engines/engine_table.hpp"
#include "encode/display_text.hpp"
#include "encode/output_format.hpp"
#include "export/destinations.hpp"
#include "export/local_agent.hpp"
#include "export/statsd.hpp"
#include "runtime/standard_streams.hpp"
#include "session/budget.hpp"
#include "session/sample_printer.hpp"
#include "session/self_metrics.hpp"
#include "session/summary.hpp"

namespace ddprof {

namespace {

std::string server_address(const Options& options) {
  if (!options.internal_stats.empty()) return options.internal_stats;
  const char* shared = std::getenv("DD_DOGSTATSD_URL");
  return shared != nullptr ? shared : "";
}

std::vector<std::string> tags_of(const Options& options) {
  std::vector<std::string> tags;
  if (!options.service.empty()) tags.push_back("service:" + options.service);
  if (!options.environment.empty()) tags.push_back("env:" + options.environment);
  if (!options.service_version.empty()) tags.push_back("version:" + options.service_version);
  return tags;
}

std::uint64_t restarts(const Summary& summary) {
  return std::accumulate(summary.worker_ends.begin(), summary.worker_ends.end(), std::uint64_t{0});
}

PeriodFacts facts_of(const Options& options, const Summary& before, const Summary& after) {
  PeriodFacts facts;
  facts.worker_restarts = restarts(after) - restarts(before);
  facts.resident_bytes = resident_bytes();
  facts.unwinding_time = after.collecting_cpu - before.collecting_cpu;
  // The period that closes now has yet to be named: this is about the ones before it.
  const bool was_any_named = after.sent + after.failed > before.sent + before.failed;
  if (was_any_named) facts.symbolizing_time = after.exported.naming_cpu - before.exported.naming_cpu;
  if (!options.events.empty() && options.events.front().is_clock)
    facts.sampling_rate_hz =
        1e9 / static_cast<double>(options.events.front().sample_value()) / after.slow_down;
  return facts;
}

// Sends what each period cost, and what it missed, to a statsd server (-b). The connection is made by the
// first period, in the process that profiles.
std::function<void(const Summary&, const Summary&)> metrics_reporter(const Options& options,
                                                                     const Journal& journal) {
  const std::string address = server_address(options);
  if (address.empty()) return {};
  auto client = std::make_shared<std::optional<StatsdClient>>();
  return [=, is_refused = false](const Summary& before, const Summary& after) mutable {
    if (!*client && !is_refused) {
      auto opened = StatsdClient::open(address, tags_of(options));
      is_refused = !opened;
      if (is_refused) journal.say(opened.error());
      if (!is_refused) client->emplace(std::move(opened).value());
    }
    if (!*client) return;
    send_self_metrics(**client, self_metrics(before, after, facts_of(options, before, after)));
    if (auto error = (*client)->take_error()) journal.say(*error);
  };
}

// A program that is wrapped takes over our own process.
Pid target_of(const Options& options) {
  if (options.global) return Pid{};
  return options.attached.pids.empty() ? Pid{::getpid()} : options.attached.pids.front();
}

// Naming and sending spread what they need over some of the period, in place of a burst that what runs
// beside them would feel.
void pace_naming(NamerOptions& naming, std::chrono::seconds period) {
  constexpr std::int64_t kMostRest = 9;  // a tenth of a core
  constexpr std::chrono::milliseconds kLongestPatience = std::chrono::seconds(25);
  naming.rest = static_cast<unsigned>(std::clamp<std::int64_t>(period.count() - 1, 0, kMostRest));
  naming.patience = std::min(kLongestPatience, std::chrono::milliseconds(period) / 2);
}

void choose_cadence(const Options& options, ProfilingRequest& request) {
  SessionOptions& session = request.session;
  if (!is_periodic(options)) {
    for (const std::string_view name : {"cpu-duration", "upload-period", "worker-period"}) {
      const bool is_given = name == "cpu-duration"
                                ? options.cpu_duration_seconds.has_value()
                                : origin_of(options, name).kind == Origin::Kind::command_line;
      if (is_given)
        session.notices.push_back(
            fmt::format("--{} has no effect: there is one profile, of the whole run", name));
    }
    return;
  }
  session.periods.length = std::chrono::seconds(options.upload_period_seconds);
  pace_naming(session.naming, *session.periods.length);
  if (options.cpu_duration_seconds.value_or(options.upload_period_seconds) == options.upload_period_seconds)
    return;
  session.periods.window = std::chrono::seconds(*options.cpu_duration_seconds);
  request.collecting.has_pauses = true;
}

// Its name was found to be one when the options were read.
void set_engine(const Options& options, ProfilingRequest& request) {
  const bool has_allocations =
      std::any_of(options.events.begin(), options.events.end(),
                  [](const EventSpec& event) { return event.kind == EventSpec::Kind::allocation; });
  auto chosen = choose_engine(options.engine, has_allocations);
  request.collecting.events = options.events;
  request.collecting.stack_bytes = static_cast<std::uint32_t>(options.stack_sample_bytes.value_or(0));
  if (!chosen) return;
  request.engine = std::move(chosen->engine);
  request.collecting.source = chosen->source;
  request.has_library = has_allocations && options.controlled.empty();
  request.collecting.max_alloc_samples = static_cast<std::uint64_t>(options.max_alloc_samples);
}

void print_progress(const Summary& summary) {
  print_to_standard_error(fmt::format("\r\033[Kddprof: {:.0f} s, {} samples, {} lost",
                                      std::chrono::duration<double>(summary.duration).count(),
                                      with_thousands(summary.stacks),
                                      with_thousands(summary.collector.lost_records)));
}

// As a shell takes it for one word.
std::string shell_word(const std::string& word) {
  const auto is_plain = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::string_view("_-./:=+@%,").find(letter) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

// How to look at what has been recorded; empty where nothing here reads it. `output` is all places that it
// went to.
std::string next_step(const Options& options, const std::string& output) {
  if (options.command != Command::record) return {};
  std::string path = options.output.empty() ? output.substr(0, output.find(", ")) : options.output;
  if (options.output.empty()) path = path.substr(path.rfind('/') + 1);  // in this folder
  const auto format = output_format(path);
  const bool is_folder = !format && !options.output.empty();
  if (format && *format == OutputFormat::svg)
    return fmt::format("\nopen {} in a browser\n", shell_word(path));
  if (!is_folder && (!format || !is_readable(*format))) return {};
  return fmt::format("\nddprof report {}\n", shell_word(path));
}

std::string target_text(const Options& options, Pid target) {
  if (options.global) return "every process of this machine";
  if (!options.program.empty()) return fmt::format("{} (PID {})", options.program.front(), to_int(target));
  return fmt::format("process {}", to_int(target));
}

// What is profiled, by which version, and where profiles go.
std::string start_line(const Options& options, Pid target, const std::string& place) {
  std::string where = fmt::format("the profile goes to {}", place);
  if (is_periodic(options))
    where = fmt::format("a profile every {} s goes to {}", options.upload_period_seconds, place);
  if (is_stored_here(options))
    where =
        fmt::format("no agent: profiles are kept in {}, every {} s", place, options.upload_period_seconds);
  if (is_agent_found(options)) where += ", an agent that was found on this machine";
  return fmt::format("version " DDPROF_VERSION ", profiling {}; {}", target_text(options, target), where);
}

std::string period_line(const Summary& before, const Summary& after) {
  return fmt::format("a period of {:.1f} s ends: {} samples, {} lost",
                     std::chrono::duration<double>(after.observed - before.observed).count(),
                     with_thousands(after.stacks - before.stacks),
                     with_thousands(after.collector.lost_records - before.collector.lost_records));
}

// What the log has of a run as a whole. A summary on the same stream says more: there the log has no end.
void tell_of_the_run(const Options& options, const Journal& journal,
                     const std::shared_ptr<const std::string>& answer, ProfilingRequest& request) {
  const bool is_in_front = options.command != Command::wrap && options.controlled.empty();
  const bool shows_summary = is_in_front || ::isatty(STDERR_FILENO) == 1;
  const bool has_own_end = !shows_summary || journal.stream() != STDERR_FILENO;
  const bool has_start = options.command != Command::record || !journal.stream();
  request.say_start = [=](Pid target, const std::string& place) {
    if (has_start) journal.say(LogLevel::notice, start_line(options, target, place));
    if (!has_own_end) return;
    for (const std::string& notice : options.notices) journal.say(LogLevel::notice, notice);
  };
  const bool has_progress = static_cast<bool>(request.session.observer.on_progress);
  request.say_summary = [=, quiet = options.quiet](const Summary& summary) {
    std::fflush(stdout);
    if (shows_summary && (!quiet || summary.exported.first_error)) {
      std::string text = render_summary(summary);
      if (!answer->empty()) text += "\n" + *answer;
      if (summary.sent > 0) text += next_step(options, summary.output);
      say_text(text, has_progress ? "\r\033[K" : fresh_line());
    }
    if (!has_own_end) return;
    for (const std::string& notice : summary.notices) journal.say(LogLevel::informational, notice);
    journal.say(summary.failed > 0 ? LogLevel::error : LogLevel::notice, end_line(summary));
  };
  request.session.observer.on_period = [journal, send = metrics_reporter(options, journal)](
                                           const Summary& before, const Summary& after) {
    journal.say(LogLevel::debug, period_line(before, after));
    if (send) send(before, after);
  };
}

}  // namespace

void say_error(const Error& error) {
  std::string hint = error.hint.empty() ? "" : fmt::format("  try: {}\n", error.hint);
  say_text(fmt::format("ddprof: {}\n{}", printable(error.message), hint));
}

std::string working_directory() {
  std::error_code unknown;
  return std::filesystem::current_path(unknown).string();
}

Target running_target(const Options& options) {
  if (is_attaching(options)) return Target::processes(options.attached.pids, options.children);
  Target host = Target::whole_host();
  // It was found to be right when the options were read.
  auto filter = ProcessFilter::parse(options.include, options.exclude);
  if (filter && !filter->is_empty())
    host.filter = std::make_shared<const ProcessFilter>(std::move(filter).value());
  if (options.maximum_pids >= 0) host.max_processes = static_cast<std::size_t>(options.maximum_pids);
  return host;
}

PrivilegeLimits privilege_limits(const Options& options) { return {options.drop_caps, options.switch_user}; }

ProfilingRequest make_profiling_request(const Options& options) {
  ProfilingRequest request;
  set_engine(options, request);
  bool is_in_front = options.command != Command::wrap;
  request.session.naming.is_enabled = !options.disable_symbolization && !options.remote_symbolization;
  request.session.naming.has_inlined_calls = options.inlined_functions;
  request.session.naming.cache_folder = user_folder("XDG_CACHE_HOME", ".cache");
  request.session.has_timeline = options.timeline;
  request.session.notices = options.notices;
  const RunStamp stamp = RunStamp::at(unix_now());
  if (std::string notice = stored_notice(options, target_of(options), stamp); !notice.empty())
    request.session.notices.push_back(std::move(notice));
  request.session.service = options.service;
  choose_cadence(options, request);
  if (options.duration_seconds)
    request.session.periods.duration = std::chrono::seconds(*options.duration_seconds);
  if (options.show_samples) {
    const NamerOptions& naming = request.session.naming;
    auto names = std::make_shared<FrameNames>(naming.is_enabled, naming.cache_folder);
    request.session.observer.on_sample = [names](const SampleEvent& sample, const BuiltStack& stack,
                                                 const ProcessTable& processes, const FileRegistry& files) {
      const std::string line = printable_lines(sample_line(sample, stack, processes, files, *names));
      std::fwrite(line.data(), 1, line.size(), stdout);
    };
  }
  if (is_in_front && !options.quiet && may_draw_progress(!options.program.empty(), target_of(options)))
    request.session.observer.on_progress = print_progress;
  if (options.nice) request.nice = static_cast<int>(*options.nice);
  request.cpu_affinity = options.cpu_affinity;
  if (!options.controlled.empty()) {
    request.control = std::make_shared<const Control>(STDIN_FILENO, STDERR_FILENO);
    request.vain = options.warnings;
    request.vain.insert(request.vain.end(), options.notices.begin(), options.notices.end());
  }
  request.privileges = privilege_limits(options);
  const Journal journal(options, working_directory());
  request.log_stream = journal.stream();
  request.say_error = [journal](const Error& error) { journal.say(error); };
  request.say_notice = [journal](const std::string& text) { journal.say(LogLevel::notice, text); };
  // What the recording has found, made when its file is written and told at the end, both by the worker.
  const auto answer = std::make_shared<std::string>();
  std::function<void(const Profile&)> on_written;
  if (options.command == Command::record && !options.quiet) {
    on_written = [answer](const Profile& profile) {
      *answer = answer_text(profile, terminal_width(STDERR_FILENO), wants_color(STDERR_FILENO));
    };
  }
  request.session.observer.say_notice = request.say_notice;
  const Voice voice{request.say_error, request.say_notice,
                    [journal](const std::string& text) { journal.say(LogLevel::debug, text); }, on_written};
  const DestinationOptions& places = options;
  request.make_destination = [places, stamp, voice](Pid target, bool samples_kernel) {
    DestinationOptions known = places;
    known.samples_kernel = samples_kernel;
    return make_destination(known, target, stamp, voice);
  };
  request.session.exit_timeout = std::chrono::seconds(options.exit_timeout_seconds);
  tell_of_the_run(options, journal, answer, request);
  request.has_fault_info = options.fault_info;
  request.session.limits.memory = static_cast<std::uint64_t>(options.max_memory_mib) << 20U;
  request.session.limits.cpu = static_cast<double>(options.max_cpu_percent.value_or(0)) / 100;
  if (request.session.periods.length)
    request.session.periods.per_worker = static_cast<std::uint64_t>(options.worker_period);
  return request;
}

}  // namespace ddprof
