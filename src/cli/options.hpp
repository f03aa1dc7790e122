#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "collect/event_spec.hpp"
#include "export/destination_options.hpp"

namespace ddprof {

// What the user asked ddprof to do.
enum class Command : std::uint8_t {
  wrap,        // ddprof [options] program…: become the program, profile it from the side
  attach,      // ddprof -p PID or --container NAME
  global,      // ddprof -g
  record,      // ddprof record …: stay in front; the target is `program`, `pids`, `container` or `global`
  report,      // ddprof report [FILE|DIR…]
  list,        // ddprof list [DIR]: what profiles are kept
  convert,     // ddprof convert IN OUT
  doctor,      // ddprof doctor: what works on this machine
  completion,  // ddprof completion SHELL
  configuration,  // no target: --show-config or --capture-config alone
  version,
  help,           // the overview
  help_command,   // the page of one command, which is in `topic`
  help_extended,  // the same with all options
  help_man,       // hidden: the same as a man page
  help_markdown,  // hidden: the text of docs/commands.md
  help_commands,  // hidden: the words of all commands, for scripts that install man pages
  help_events,    // -e help
};

// Commands whose words are files or names, among options in any order. No configuration reaches them.
[[nodiscard]] inline bool takes_files(Command command) {
  switch (command) {
    case Command::report:
    case Command::list:
    case Command::convert:
    case Command::help:
    case Command::completion:
      return true;
    default:
      return false;
  }
}

// In the order of the words in the option table.
enum class LogLevel : std::uint8_t { debug, informational, notice, warning, error };

// Where a value came from. Later kinds win over earlier ones.
struct Origin {
  enum class Kind : std::uint8_t { default_value, file, environment, command_line };
  Kind kind = Kind::default_value;
  std::string detail = {};  // "ddprof.toml:3", "DD_SERVICE", "the program's name"
};

// The running processes that are meant by -p or --container.
struct AttachChoice {
  std::vector<Pid> pids;  // the most important one first
  std::string name;       // what they are called by; empty: as the first process
};

// Every setting with its effective value. The defaults here are the defaults of the option table: a
// default-made Options is what parsing nothing yields. Plain values; where each came from is in `origins`.
struct Options : DestinationOptions {
  Command command = Command::help;
  std::vector<std::string> program;  // wrap and record: the program and its arguments, untouched
  std::vector<std::string> files;    // report: what to read; convert: what to read and what to write
  Command topic = Command::wrap;     // help: of this command

  // Target
  std::vector<std::string> pids;              // as given: "12,34", "name:nginx"; see AttachChoice
  std::string container;                      // of which all processes are attached to
  bool children = true;                       // also of what these have started and will start
  std::vector<std::string> include, exclude;  // with -g: conditions on processes, see ProcessCondition
  std::int64_t maximum_pids = 100;            // -1: no limit
  std::string switch_user;
  bool drop_caps = false;
  bool enable = true;  // false: only run the program

  // Sampling
  std::vector<std::string> event_texts;   // as given; `events` is what they mean
  std::string preset = "cpu_only";        // nothing is put into a program that was not asked for
  std::optional<std::int64_t> frequency;  // already applied to `events`
  std::optional<std::int64_t> duration_seconds;
  std::string engine = "auto";
  std::optional<std::int64_t> stack_sample_bytes;  // none: by rate and room in the rings
  bool inlined_functions = true;
  bool disable_symbolization = false;
  bool timeline = false;
  bool reorder_events = true;

  // Output
  bool show_samples = false;
  bool quiet = false;
  std::string log_mode = "stderr";  // stdout, stderr, syslog, disabled or a file
  LogLevel log_level = LogLevel::notice;

  // Upload, beside where to
  std::int64_t exit_timeout_seconds = 5;
  bool find_agent = true;
  std::optional<std::int64_t> period_seconds;        // already applied to upload_period_seconds
  std::optional<std::int64_t> cpu_duration_seconds;  // of each period; none: all of it
  std::int64_t worker_period = 240;

  // The profiler itself
  std::optional<std::int64_t> nice;
  std::string cpu_affinity;                     // hexadecimal mask
  std::optional<std::int64_t> max_cpu_percent;  // of one core; none: no limit
  std::int64_t max_memory_mib = 256;
  std::int64_t max_alloc_samples = 2'000;
  std::string internal_stats;
  std::string socket;
  bool fault_info = true;
  std::string controlled;  // by libddprof.so in the process: "bare" or "hooked"; empty: not
  std::int64_t initial_loaded_libs_check_delay_ms = 5000;
  std::int64_t loaded_libs_check_interval_ms = 59000;

  // Configuration
  std::string config;  // the file that was read; empty: none
  bool show_config = false;
  std::string capture_config;

  // Report
  std::int64_t top = 0;  // rows to print; 0: what fits one screen
  std::string sample_type;
  std::vector<std::string> focus, ignore;  // regular expressions
  std::string thread, process;             // a name or an id
  std::vector<std::string> labels;         // KEY=VALUE
  std::string only_module;                 // a file
  std::string since, until;                // also of list: 10m, or a time
  std::string own;                         // a regular expression
  std::string callers, callees;            // a function
  bool pager = true;
  bool growth = false;
  bool modules = false;
  bool lines = false;
  std::string annotate;  // a function
  std::string source_dir;
  bool json = false;  // also of doctor and list

  // Convert
  std::string to;  // the format; empty: by the extension of the file

  // What the settings mean together.
  AttachChoice attached;  // known when profiling begins
  std::vector<EventSpec>
      events;  // from event_texts, else from the preset; never empty for a profiling command
  std::vector<std::string> warnings;  // one line each, before anything runs: what was typed in vain
  std::vector<std::string> notices;   // one line each, to be said once: a setting that was left alone

  std::vector<Origin> origins;  // by position in option_table(); empty: all defaults
};

// Whether running processes are profiled.
[[nodiscard]] inline bool is_attaching(const Options& options) {
  return !options.pids.empty() || !options.container.empty();
}

}  // namespace ddprof
