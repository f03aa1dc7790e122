#include "cli/option_table.hpp"

#include <algorithm>
#include <array>

#include "base/nearest.hpp"
#include "collect/engines/engine_table.hpp"
#include "encode/output_format.hpp"

namespace ddprof {

namespace {

using Group = OptionGroup;
using Level = OptionLevel;

constexpr std::int64_t kMaxSeconds = 1'000'000'000;

// clang-format off
const auto kRows = std::to_array<OptionRow>({
    // What to profile
    {.name = "pid", .letter = 'p', .slot = &Options::pids, .value = "PID", .group = Group::target,
     .help = "attach to running processes and their children: a number, 12,34 or name:GLOB; repeatable", .command_line_only = true},
    {.name = "container", .slot = &Options::container, .value = "NAME", .group = Group::target,
     .help = "attach to all processes of a container: the beginning of its id, its host name, or its pod's", .command_line_only = true},
    {.name = "children", .slot = &Options::children, .group = Group::target, .level = Level::extended,
     .help = "also what the processes of -p have started and will start; --no-children: their threads alone", .takes_word = true,
     .command_line_only = true},
    {.name = "global", .letter = 'g', .slot = &Options::global, .group = Group::target,
     .help = "every process on this machine", .command_line_only = true},
    {.name = "duration", .letter = 'd', .slot = &Options::duration_seconds, .value = "SECONDS", .group = Group::target,
     .help = "with -p, -g or record: stop after this time", .low = 1, .high = kMaxSeconds},
    {.name = "enable", .environment = "DD_PROFILING_ENABLED", .slot = &Options::enable, .group = Group::target,
     .help = "profile; --enable=false only runs the program", .takes_word = true},
    {.name = "include", .environment = "DD_PROFILING_INCLUDE", .slot = &Options::include, .value = "WHAT",
     .group = Group::target, .help = "with -g: only such processes: name:GLOB, user:NAME, service:GLOB, container:ID, cgroup:GLOB; repeatable"},
    {.name = "exclude", .environment = "DD_PROFILING_EXCLUDE", .slot = &Options::exclude, .value = "WHAT",
     .group = Group::target, .help = "with -g: no such processes; repeatable, and stronger than --include"},
    {.name = "maximum-pids", .environment = "DD_PROFILING_MAXIMUM_PIDS", .slot = &Options::maximum_pids, .value = "N",
     .group = Group::target, .level = Level::extended,
     .help = "with -g: processes to follow at once; those beyond are counted under one frame; -1: no limit", .low = -1},
    {.name = "switch-user", .environment = "DD_PROFILING_SWITCH_USER", .slot = &Options::switch_user, .value = "USER",
     .group = Group::target, .level = Level::extended, .help = "run the program as this user: a name, or UID:GID"},
    {.name = "drop-caps", .environment = "DD_PROFILING_DROP_CAPS", .slot = &Options::drop_caps, .group = Group::target,
     .level = Level::extended, .help = "no capability for the program, nor for the profiler once it has opened its events"},

    // How to sample
    {.name = "event", .letter = 'e', .environment = "DD_PROFILING_NATIVE_EVENTS", .slot = &Options::event_texts,
     .value = "EVENT", .group = Group::sampling, .help = "what to sample, repeatable; -e help explains"},
    {.name = "preset", .environment = "DD_PROFILING_NATIVE_PRESET", .slot = &Options::preset, .value = "NAME",
     .group = Group::sampling, .help = "a named set of events; those with allocations put a library into the program",
     .choices = "default cpu_only alloc_only alloc_live_heap cpu_live_heap"},
    {.name = "frequency", .letter = 'F', .slot = &Options::frequency, .value = "HZ", .group = Group::sampling,
     .help = "samples per second of CPU time", .default_note = "99", .low = 1, .high = 100000},
    {.name = "inlined-functions", .letter = 'I', .environment = "DD_PROFILING_INLINED_FUNCTIONS",
     .slot = &Options::inlined_functions, .group = Group::sampling,
     .help = "show inlined calls as frames", .takes_word = true},
    {.name = "timeline", .environment = "DD_PROFILING_TIMELINE_ENABLE", .slot = &Options::timeline,
     .group = Group::sampling, .level = Level::extended,
     .help = "keep the time of each sample: larger profiles, from which viewers draw what happened when",
     .default_note = "on for uploads to Datadog"},
    {.name = "engine", .slot = &Options::engine, .value = "NAME", .group = Group::sampling, .level = Level::extended,
     .help = "how samples are taken", .choices = engine_choices(), .hidden_choices = hidden_engine_choices()},
    {.name = "stack-sample-size", .environment = "DD_PROFILING_SAMPLE_STACK_USER",
     .slot = &Options::stack_sample_bytes, .value = "BYTES", .group = Group::sampling, .level = Level::extended,
     .help = "stack copied with each sample", .default_note = "65528 up to 250 Hz, less above or in small rings", .low = 8, .high = 65528, .multiple = 8},
    {.name = "disable-symbolization", .environment = "DD_PROFILING_DISABLE_SYMBOLIZATION",
     .slot = &Options::disable_symbolization, .group = Group::sampling, .level = Level::extended,
     .help = "leave addresses without names"},
    {.name = "reorder-events", .environment = "DD_PROFILING_REORDER_EVENTS", .slot = &Options::reorder_events,
     .group = Group::sampling, .level = Level::extended, .help = "merge the CPUs' records by time; always done here",
     .has_effect = false},

    // What comes out
    {.name = "output", .letter = 'O', .slot = &Options::output, .value = "FILE", .group = Group::output,
     .help = "profile to write, or a folder; the extension is the format", .default_note = "named by the command",
     .suggestions = output_extensions()},
    {.name = "quiet", .letter = 'q', .slot = &Options::quiet, .group = Group::output,
     .help = "no progress and no summary"},
    {.name = "show-samples", .environment = "DD_PROFILING_SHOW_SAMPLES", .slot = &Options::show_samples,
     .group = Group::output, .level = Level::extended, .help = "one text line per sample"},
    {.name = "debug-pprof-prefix", .environment = "DD_PROFILING_PPROF_PREFIX", .slot = &Options::debug_pprof_prefix,
     .value = "PATH", .group = Group::output, .level = Level::extended,
     .help = "also write every profile to files that begin so"},
    {.name = "log-level", .letter = 'l', .environment = "DD_PROFILING_NATIVE_LOG_LEVEL", .slot = &Options::log_level,
     .value = "LEVEL", .group = Group::output, .help = "how much the profiler says: notice has start, end and troubles, debug every period and upload",
     .choices = "debug informational notice warn error"},
    {.name = "log-mode", .letter = 'o', .environment = "DD_PROFILING_NATIVE_LOG_MODE", .slot = &Options::log_mode,
     .value = "WHERE", .group = Group::output, .help = "where messages go, a file or one of these",
     .suggestions = "stdout stderr syslog disabled"},

    // Whose profile it is
    {.name = "service", .letter = 'S', .environment = "DD_SERVICE", .slot = &Options::service, .value = "NAME",
     .group = Group::identity, .help = "name of the service", .default_note = "the program's name", .also = {Command::report, Command::list}},
    {.name = "environment", .letter = 'E', .environment = "DD_ENV", .slot = &Options::environment, .value = "NAME",
     .group = Group::identity, .help = "environment tag: production, staging"},
    {.name = "service-version", .letter = 'V', .environment = "DD_VERSION", .slot = &Options::service_version,
     .value = "VERSION", .group = Group::identity, .help = "version tag of the service"},
    {.name = "tags", .letter = 'T', .environment = "DD_TAGS", .slot = &Options::tags, .value = "K:V,K:V",
     .group = Group::identity, .help = "more tags"},
    {.name = "runtime-id", .environment = "DD_PROFILING_RUNTIME_ID", .slot = &Options::runtime_id, .value = "UUID",
     .group = Group::identity, .level = Level::extended, .help = "identity of this run",
     .default_note = "random"},

    // Where it is sent
    {.name = "url", .letter = 'U', .environment = "DD_TRACE_AGENT_URL", .slot = &Options::url, .value = "URL",
     .group = Group::upload, .help = "agent: host:port, http(s)://, unix:///path or /path; with --agentless, the intake: https://",
     .also = {Command::doctor}},
    {.name = "host", .letter = 'H', .environment = "DD_AGENT_HOST", .slot = &Options::host, .value = "HOST",
     .group = Group::upload, .help = "agent's host", .also = {Command::doctor}},
    {.name = "port", .letter = 'P', .environment = "DD_TRACE_AGENT_PORT", .slot = &Options::port, .value = "PORT",
     .group = Group::upload, .help = "agent's port", .low = 1, .high = 65535,
     .also = {Command::doctor}},
    {.name = "upload-period", .letter = 'u', .environment = "DD_PROFILING_UPLOAD_PERIOD",
     .slot = &Options::upload_period_seconds, .value = "SECONDS", .group = Group::upload,
     .help = "time that one profile covers", .low = 1, .high = kMaxSeconds},
    {.name = "period", .environment = "DD_PROFILING_PERIOD", .slot = &Options::period_seconds, .value = "SECONDS",
     .group = Group::upload, .level = Level::extended, .help = "another name of --upload-period", .low = 1,
     .high = kMaxSeconds},
    {.name = "cpu-duration", .environment = "DD_PROFILING_CPU_DURATION", .slot = &Options::cpu_duration_seconds,
     .value = "SECONDS", .group = Group::upload, .level = Level::extended,
     .help = "sample only the first part of each period", .default_note = "all of it", .low = 1, .high = kMaxSeconds},
    {.name = "do-export", .environment = "DD_PROFILING_DO_EXPORT", .slot = &Options::do_export, .group = Group::upload,
     .level = Level::extended, .help = "send profiles to the agent that is named", .takes_word = true},
    {.name = "find-agent", .environment = "DD_PROFILING_FIND_AGENT", .slot = &Options::find_agent, .group = Group::upload,
     .level = Level::extended, .help = "without a named agent, send to one on this machine: its socket, or port 8126", .takes_word = true,
     .except = {Command::record}},
    {.name = "split-services", .environment = "DD_PROFILING_SPLIT_SERVICES", .slot = &Options::split_services,
     .group = Group::upload, .level = Level::extended,
     .help = "with -g: an upload for each service in each container, in place of one for the host"},
    {.name = "agentless", .environment = "DD_PROFILING_AGENTLESS", .slot = &Options::agentless,
     .group = Group::upload, .level = Level::extended, .help = "send to the intake, without an agent",
     .takes_word = true},
    {.name = "api-key", .environment = "DD_API_KEY", .slot = &Options::api_key, .value = "KEY", .group = Group::upload,
     .level = Level::extended, .help = "key for --agentless", .is_secret = true},
    {.name = "site", .environment = "DD_SITE", .slot = &Options::site, .value = "DOMAIN", .group = Group::upload,
     .level = Level::extended, .help = "which intake --agentless means"},
    {.name = "intake-format", .environment = "DD_PROFILING_INTAKE_FORMAT", .slot = &Options::intake_format,
     .value = "NAME", .group = Group::upload, .level = Level::extended,
     .help = "which of Datadog's bodies to send; the older ones are for old receivers", .choices = "v4 v3 form"},
    {.name = "otlp-endpoint", .environment = "OTEL_EXPORTER_OTLP_ENDPOINT", .slot = &Options::otlp_endpoint,
     .value = "URL", .group = Group::upload, .help = "also send to an OpenTelemetry collector: http(s)://host:4318"},
    {.name = "otlp-profiles-endpoint", .environment = "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT",
     .slot = &Options::otlp_profiles_endpoint, .value = "URL", .group = Group::upload, .level = Level::extended,
     .help = "the same, with the whole address: no path is added"},
    {.name = "otlp-headers", .environment = "OTEL_EXPORTER_OTLP_HEADERS", .slot = &Options::otlp_headers,
     .value = "K=V,K=V", .group = Group::upload, .level = Level::extended, .help = "headers for it, percent-encoded",
     .is_secret = true},
    {.name = "otlp-compression", .environment = "OTEL_EXPORTER_OTLP_COMPRESSION", .slot = &Options::otlp_compression,
     .value = "NAME", .group = Group::upload, .level = Level::extended, .help = "compression for it",
     .suggestions = "gzip none"},
    {.name = "otlp-certificate", .environment = "OTEL_EXPORTER_OTLP_CERTIFICATE", .slot = &Options::otlp_certificate,
     .value = "FILE", .group = Group::upload, .level = Level::extended,
     .help = "authorities to trust for it", .default_note = "--ca-file"},
    {.name = "otlp-protocol", .environment = "OTEL_EXPORTER_OTLP_PROTOCOL", .slot = &Options::otlp_protocol,
     .value = "NAME", .group = Group::upload, .level = Level::extended, .help = "only http/protobuf is spoken"},
    {.name = "pyroscope-url", .environment = "PYROSCOPE_SERVER_ADDRESS", .slot = &Options::pyroscope_url,
     .value = "URL", .group = Group::upload, .help = "also send to a Pyroscope server: http(s)://host:4040"},
    {.name = "pyroscope-user", .environment = "PYROSCOPE_BASIC_AUTH_USER", .slot = &Options::pyroscope_user,
     .value = "NAME", .group = Group::upload, .level = Level::extended, .help = "user there"},
    {.name = "pyroscope-password", .environment = "PYROSCOPE_BASIC_AUTH_PASSWORD", .slot = &Options::pyroscope_password,
     .value = "WORD", .group = Group::upload, .level = Level::extended, .help = "password or token there",
     .is_secret = true},
    {.name = "pyroscope-tenant", .environment = "PYROSCOPE_TENANT_ID", .slot = &Options::pyroscope_tenant,
     .value = "ID", .group = Group::upload, .level = Level::extended, .help = "tenant there"},
    {.name = "ca-file", .environment = "DD_PROFILING_CA_FILE", .slot = &Options::ca_file, .value = "FILE",
     .group = Group::upload, .level = Level::extended,
     .help = "certificates of the authorities to trust, in place of the system's"},
    {.name = "spool-dir", .environment = "DD_PROFILING_SPOOL_DIR", .slot = &Options::spool_dir, .value = "DIR",
     .group = Group::upload, .level = Level::extended, .help = "where profiles wait while a receiver is unreachable; none: they are dropped",
     .default_note = "the user's state directory"},
    {.name = "spool-size", .environment = "DD_PROFILING_SPOOL_SIZE", .slot = &Options::spool_mib, .value = "MIB",
     .group = Group::upload, .level = Level::extended, .help = "how much may wait; past it, the oldest are dropped", .low = 1, .high = 1'000'000},
    {.name = "spool-age", .environment = "DD_PROFILING_SPOOL_AGE", .slot = &Options::spool_hours, .value = "HOURS",
     .group = Group::upload, .level = Level::extended, .help = "how long it may wait", .low = 1, .high = 10'000},
    {.name = "exit-timeout", .environment = "DD_PROFILING_EXIT_TIMEOUT", .slot = &Options::exit_timeout_seconds,
     .value = "SECONDS", .group = Group::upload, .level = Level::extended,
     .help = "time for the last upload; then it waits for the next run", .low = 0, .high = 3600},
    {.name = "remote-symbolization", .environment = "DD_PROFILING_REMOTE_SYMBOLIZATION",
     .slot = &Options::remote_symbolization, .group = Group::upload, .level = Level::extended,
     .help = "leave addresses and build ids, for a backend that names them"},

    // The profiler itself
    {.name = "nice", .environment = "DD_PROFILING_NICE", .slot = &Options::nice, .value = "N",
     .group = Group::profiler, .help = "niceness of the profiler, -20 to 19", .default_note = "unchanged",
     .low = -20, .high = 19},
    {.name = "cpu-affinity", .environment = "DD_PROFILING_CPU_AFFINITY", .slot = &Options::cpu_affinity,
     .value = "MASK", .group = Group::profiler, .level = Level::extended,
     .help = "CPUs for the profiler, hexadecimal mask", .default_note = "one, by the scheduler", .is_hexadecimal = true},
    {.name = "max-cpu", .environment = "DD_PROFILING_MAX_CPU", .slot = &Options::max_cpu_percent, .value = "PERCENT",
     .group = Group::profiler, .help = "of one core for the profiler: past it, fewer samples are taken",
     .default_note = "no limit", .low = 1, .high = 100},
    {.name = "max-memory", .environment = "DD_PROFILING_MAX_MEMORY", .slot = &Options::max_memory_mib, .value = "MIB",
     .group = Group::profiler, .help = "for the profiler: past it, it begins afresh", .low = 32, .high = 1048576},
    {.name = "max-alloc-samples", .environment = "DD_PROFILING_MAX_ALLOC_SAMPLES", .slot = &Options::max_alloc_samples,
     .value = "N", .group = Group::profiler, .level = Level::extended,
     .help = "of allocations, a second and process: past it, fewer are taken, each of which stands for more", .low = 8,
     .high = 10'000'000},
    {.name = "worker-period", .environment = "DD_PROFILING_WORKER_PERIOD", .slot = &Options::worker_period,
     .value = "N", .group = Group::profiler, .level = Level::extended,
     .help = "profiles between two worker replacements", .low = 1},
    {.name = "internal-stats", .letter = 'b', .environment = "DD_PROFILING_INTERNAL_STATS",
     .slot = &Options::internal_stats, .value = "SOCKET", .group = Group::profiler, .level = Level::extended,
     .help = "statsd socket for the profiler's own metrics", .default_note = "that of DD_DOGSTATSD_URL, if it is set"},
    {.name = "fault-info", .environment = "DD_PROFILING_FAULT_INFO", .slot = &Options::fault_info,
     .group = Group::profiler, .level = Level::extended, .help = "log why a worker crashed", .takes_word = true},
    {.name = "socket", .environment = "DD_PROFILING_NATIVE_SOCKET", .slot = &Options::socket, .value = "PATH",
     .group = Group::profiler, .level = Level::extended, .help = "where the library in the target connects",
     .has_effect = false},
    {.name = "initial-loaded-libs-check-delay", .environment = "DD_PROFILING_INITIAL_LOADED_LIBS_CHECK_DELAY",
     .slot = &Options::initial_loaded_libs_check_delay_ms, .value = "MS", .group = Group::profiler,
     .level = Level::extended, .help = "first look for newly loaded libraries", .low = 0, .has_effect = false},
    {.name = "loaded-libs-check-interval", .environment = "DD_PROFILING_LOADED_LIBS_CHECK_INTERVAL",
     .slot = &Options::loaded_libs_check_interval_ms, .value = "MS", .group = Group::profiler,
     .level = Level::extended, .help = "time between two such looks", .low = 0, .has_effect = false},

    {.name = "controlled", .slot = &Options::controlled, .value = "HOW", .group = Group::profiler, .level = Level::hidden,
     .help = "started by libddprof.so (ddprof.h): commands on standard input, answers on standard error", .choices = "bare hooked",
     .command_line_only = true},

    // Configuration
    {.name = "config", .environment = "DD_PROFILING_NATIVE_CONFIG", .slot = &Options::config, .value = "FILE",
     .group = Group::configuration, .help = "TOML file: option = value",
     .default_note = "./ddprof.toml if it exists", .command_line_only = true, .also = {Command::doctor}},
    {.name = "show-config", .environment = "DD_PROFILING_SHOW_CONFIG", .slot = &Options::show_config,
     .group = Group::configuration, .help = "print every value and where it came from, to standard output"},
    {.name = "capture-config", .slot = &Options::capture_config, .value = "FILE", .group = Group::configuration,
     .help = "write the configuration for --config", .command_line_only = true},
    {.name = "version", .letter = 'v', .command = Command::version, .group = Group::configuration,
     .help = "print the version"},
    {.name = "help", .letter = 'h', .command = Command::help, .group = Group::configuration,
     .help = "print help; after a command, that of the command"},
    {.name = "help-extended", .command = Command::help_extended, .group = Group::configuration,
     .help = "the same with all options and environment variables"},
    {.name = "help-man", .command = Command::help_man, .group = Group::configuration, .level = Level::hidden,
     .help = "print the man page; after a command, that of the command"},
    {.name = "help-commands", .command = Command::help_commands, .group = Group::configuration,
     .level = Level::hidden, .help = "print the words of all commands"},
    {.name = "help-markdown", .command = Command::help_markdown, .group = Group::configuration,
     .level = Level::hidden, .help = "print docs/commands.md"},

    // ddprof report
    {.name = "top", .letter = 'n', .slot = &Options::top, .value = "N", .group = Group::report,
     .help = "rows of a table", .default_note = "what fits one screen", .low = 0, .high = 1'000'000},
    {.name = "sample-type", .slot = &Options::sample_type, .value = "NAME", .group = Group::report,
     .help = "which value to look at: cpu, samples", .default_note = "the profile's own choice", .command_line_only = true},
    {.name = "focus", .slot = &Options::focus, .value = "REGEX", .group = Group::report,
     .help = "only stacks with a matching function, file or module", .command_line_only = true},
    {.name = "ignore", .slot = &Options::ignore, .value = "REGEX", .group = Group::report,
     .help = "drop such stacks", .command_line_only = true},
    {.name = "thread", .slot = &Options::thread, .value = "NAME", .group = Group::report,
     .help = "only this thread, by name or id", .command_line_only = true},
    {.name = "process", .slot = &Options::process, .value = "NAME", .group = Group::report,
     .help = "only this process, by name or id", .command_line_only = true},
    {.name = "label", .slot = &Options::labels, .value = "KEY=VALUE", .group = Group::report,
     .help = "only samples with this label: service=shop, container_id=3fa9; repeatable", .command_line_only = true},
    {.name = "only-module", .slot = &Options::only_module, .value = "NAME", .group = Group::report,
     .help = "only samples taken in the code of this file: libc.so.6", .command_line_only = true},
    {.name = "since", .slot = &Options::since, .value = "TIME", .group = Group::report,
     .help = "of several profiles, those that end after: 10m, 2h, 1d or 2026-11-16T06:57:55Z",
     .command_line_only = true, .also = {Command::list}},
    {.name = "until", .slot = &Options::until, .value = "TIME", .group = Group::report,
     .help = "and those that begin before", .command_line_only = true, .also = {Command::list}},
    {.name = "own", .slot = &Options::own, .value = "REGEX", .group = Group::report,
     .help = "what the headline takes for the program's own code: functions, files or modules",
     .default_note = "the executable without runtimes and std", .command_line_only = true},
    {.name = "callers", .slot = &Options::callers, .value = "NAME", .group = Group::report,
     .help = "what calls one function", .command_line_only = true},
    {.name = "callees", .slot = &Options::callees, .value = "NAME", .group = Group::report,
     .help = "what one function calls", .command_line_only = true},
    {.name = "growth", .slot = &Options::growth, .group = Group::report,
     .help = "of several profiles with a live heap: what is alive at the end and was not at the beginning",
     .command_line_only = true},
    {.name = "modules", .slot = &Options::modules, .group = Group::report,
     .help = "per file with code, and what named its frames", .command_line_only = true},
    {.name = "lines", .slot = &Options::lines, .group = Group::report,
     .help = "per source line", .command_line_only = true},
    {.name = "annotate", .slot = &Options::annotate, .value = "NAME", .group = Group::report,
     .help = "source and assembly of one function", .command_line_only = true},
    {.name = "source-dir", .slot = &Options::source_dir, .value = "DIR", .group = Group::report,
     .help = "where --annotate finds the source", .command_line_only = true},
    {.name = "json", .slot = &Options::json, .group = Group::report,
     .help = "print JSON, for programs", .command_line_only = true, .also = {Command::doctor, Command::list}},
    {.name = "pager", .slot = &Options::pager, .group = Group::report,
     .help = "show what is too long for the terminal with $PAGER; --no-pager: never", .command_line_only = true,
     .also = {Command::list}},

    // ddprof convert
    {.name = "to", .slot = &Options::to, .value = "FORMAT", .group = Group::convert, .help = "what to write",
     .default_note = "by the extension of OUT", .choices = output_format_names(),
     .command_line_only = true},
});
// clang-format on

}  // namespace

std::span<const OptionRow> option_table() { return kRows; }

std::string_view group_title(OptionGroup group) {
  switch (group) {
    case Group::target:
      return "What to profile";
    case Group::sampling:
      return "How to sample";
    case Group::output:
      return "What comes out";
    case Group::identity:
      return "Whose profile it is";
    case Group::upload:
      return "Where it is sent";
    case Group::profiler:
      return "The profiler itself";
    case Group::configuration:
      return "Configuration";
    case Group::report:
      return "ddprof report";
    case Group::convert:
      return "ddprof convert";
  }
  return {};
}

namespace {

CommandSet commands_of(OptionGroup group) {
  if (group == Group::report) return {Command::report};
  if (group == Group::convert) return {Command::convert};
  return {Command::wrap, Command::record};
}

}  // namespace

bool belongs_to(const OptionRow& row, Command command) {
  const bool is_setting = !std::holds_alternative<std::monostate>(row.slot);
  if (!is_setting || row.also.has(command)) return true;  // every command has --help
  return commands_of(row.group).has(command) && !row.except.has(command);
}

std::string with_dashes(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

std::optional<std::size_t> find_option(std::string_view name) {
  const std::string wanted = with_dashes(name);
  for (std::size_t index = 0; index < kRows.size(); ++index) {
    if (kRows[index].name == wanted) return index;
  }
  return std::nullopt;
}

std::optional<std::size_t> find_option(char letter) {
  if (letter == 0) return std::nullopt;
  for (std::size_t index = 0; index < kRows.size(); ++index) {
    if (kRows[index].letter == letter) return index;
  }
  return std::nullopt;
}

bool is_flag(const OptionRow& row) { return row.value.empty(); }

std::string did_you_mean_option(std::string_view name, std::string_view prefix, Command command) {
  constexpr std::size_t kMostAtOnce = 3;
  const std::string wanted = with_dashes(name);
  std::vector<std::string_view> names, begun;
  for (const OptionRow& row : kRows) {
    if (!belongs_to(row, command) || row.level == Level::hidden) continue;
    names.push_back(row.name);
    if (wanted.size() > 1 && row.name.starts_with(wanted)) begun.push_back(row.name);
  }
  if (begun.empty() || begun.size() > kMostAtOnce) begun = {nearest(wanted, names)};
  if (begun.front().empty()) return {};
  std::string text;
  for (const std::string_view each : begun)
    text += fmt::format("{}{}{}", text.empty() ? "" : " or ", prefix, each);
  return fmt::format("; did you mean {}?", text);
}

const Origin& origin_of(const Options& options, std::string_view name) {
  static const Origin default_origin;
  const std::optional<std::size_t> index = find_option(name);
  return index && *index < options.origins.size() ? options.origins[*index] : default_origin;
}

}  // namespace ddprof
