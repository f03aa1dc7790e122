#include "cli/command_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/nearest.hpp"

namespace ddprof {

namespace {

constexpr auto kWrapExamples = std::to_array<CommandExample>({
    {"ddprof ./server --port 80", "profile it from start to end; it keeps its PID"},
    {"ddprof -S shop -U localhost:8126 ./server", "name the service and the agent"},
    {"ddprof -p 1234", "profile a running process until it ends"},
    {"ddprof -g", "profile every process of this machine"},
});

constexpr auto kRecordExamples = std::to_array<CommandExample>({
    {"ddprof record ./server --port 80", "profile it until it ends, or until Ctrl-C"},
    {"ddprof record -p 1234 -d 30", "profile a running process and its children for 30 seconds"},
    {"ddprof record -p name:nginx -d 30", "profile all processes of that name"},
    {"ddprof record -O out.svg ./server", "a flame graph for the browser"},
    {"ddprof record -F 999 -O out.folded ./server", "more samples; folded stacks"},
});

constexpr auto kReportExamples = std::to_array<CommandExample>({
    {"ddprof report ddprof-server.pb.gz", "hottest functions and paths"},
    {"ddprof report --focus parse cpu.pb.gz", "only stacks through parse"},
    {"ddprof report --annotate parse cpu.pb.gz", "its source and assembly, line by line"},
    {"ddprof report DIR --since 10m --service shop", "several profiles, merged"},
});

constexpr auto kListExamples = std::to_array<CommandExample>({
    {"ddprof list", "the profiles in the state directory"},
    {"ddprof list /var/lib/ddprof", "those in another folder"},
});

constexpr auto kConvertExamples = std::to_array<CommandExample>({
    {"ddprof convert cpu.pb.gz cpu.speedscope.json", "the extension of OUT decides"},
    {"zcat cpu.pb.gz | ddprof convert - - --to folded", "from a pipe to a pipe"},
});

constexpr auto kDoctorExamples = std::to_array<CommandExample>({
    {"ddprof doctor", "what works for this user, and what enables the rest"},
    {"ddprof doctor -U http://agent:8126", "whether that agent can be reached, too"},
});

constexpr auto kHelpExamples = std::to_array<CommandExample>({
    {"ddprof help record", "the same as ddprof record --help"},
    {"ddprof help ddprof", "options of ddprof in front of a program"},
});

constexpr auto kCompletionExamples = std::to_array<CommandExample>({
    {"source <(ddprof completion bash)", "in this bash; or in ~/.bashrc"},
    {"ddprof completion zsh > ~/.zfunc/_ddprof", "a folder in $fpath, read by compinit"},
    {"ddprof completion fish > ~/.config/fish/completions/ddprof.fish", "for every fish"},
});

constexpr auto kCommands = std::to_array<CommandRow>({
    {.name = "",
     .command = Command::wrap,
     .usage = "[options] PROGRAM [ARGUMENTS...]\n[options] -p PID | --container ID | -g",
     .summary = "profile a program, a process or the whole machine",
     .description =
         "Runs a program and profiles it from the side. The program keeps the PID that was started, its "
         "streams, its signals and its exit status. Profiles are sent to an agent, or written to files, "
         "once a minute. With -p or -g it attaches to what runs already.",
     .examples = kWrapExamples,
     .arguments = Arguments::program},
    {.name = "record",
     .command = Command::record,
     .usage = "[options] PROGRAM [ARGUMENTS...]\n[options] -p PID | --container ID | -g",
     .summary = "profile at a terminal: a summary and a file at the end",
     .description =
         "Runs a program, or attaches to one, stays in front, and ends with a summary and a profile file.",
     .examples = kRecordExamples,
     .arguments = Arguments::program},
    {.name = "report",
     .command = Command::report,
     .usage = "[options] [FILE|DIR...]",
     .summary = "show a profile in the terminal",
     .description =
         "Shows where the time of a profile went: functions, paths, threads, and what was missed. It reads "
         "profiles of ddprof and of other tools; several files or a folder are merged. Without a file, the "
         "newest in the user's state directory.",
     .examples = kReportExamples,
     .arguments = Arguments::profiles},
    {.name = "list",
     .command = Command::list,
     .usage = "[options] [DIR]",
     .summary = "list the profiles that are stored on this machine",
     .description =
         "Lists the profiles in a folder: when, which service, how long, how much CPU time, which file. "
         "Without a folder, those in the user's state directory.",
     .examples = kListExamples,
     .arguments = Arguments::folder},
    {.name = "convert",
     .command = Command::convert,
     .usage = "[options] IN OUT",
     .summary = "write a profile in another format",
     .description =
         "Reads a profile of any known format and writes it in another one. A file called - is a pipe.",
     .examples = kConvertExamples,
     .arguments = Arguments::conversion},
    {.name = "doctor",
     .command = Command::doctor,
     .usage = "[options]",
     .summary = "what works on this machine, and what enables the rest",
     .description =
         "Checks what profiling needs on this machine, for this user, and prints the command that lifts "
         "each limit. It changes nothing. The exit status is 0 when profiling works at all.",
     .examples = kDoctorExamples},
    {.name = "help",
     .command = Command::help,
     .usage = "[COMMAND]",
     .summary = "describe a command and its options",
     .description = "Shows this program's commands, or one of them with its options.",
     .examples = kHelpExamples,
     .arguments = Arguments::command},
    {.name = "completion",
     .command = Command::completion,
     .usage = "bash | zsh | fish",
     .summary = "print a completion script for a shell",
     .description = "Prints a script that completes commands, options and their values in this shell.",
     .examples = kCompletionExamples,
     .arguments = Arguments::shell},
    {.name = "view"},
    {.name = "diff"},
    {.name = "serve"},
    {.name = "top"},
});

}  // namespace

std::span<const CommandRow> command_table() { return kCommands; }

const CommandRow* find_command(std::string_view word) {
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(), [&](const CommandRow& row) {
    return !row.name.empty() && row.name == word;
  });
  return found == kCommands.end() ? nullptr : found;
}

const CommandRow& command_row(Command command) {
  const auto* found = std::find_if(kCommands.begin(), kCommands.end(),
                                   [&](const CommandRow& row) { return row.command == command; });
  return found == kCommands.end() ? kCommands.front() : *found;
}

std::string full_name(const CommandRow& row) {
  return row.name.empty() ? "ddprof" : fmt::format("ddprof {}", row.name);
}

std::string full_name(Command command) { return full_name(command_row(command)); }

std::string did_you_mean_command(std::string_view word) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : kCommands) {
    if (row.command && !row.name.empty()) names.push_back(row.name);
  }
  const std::string_view best = nearest(word, names);
  return best.empty() ? std::string() : fmt::format("; did you mean ddprof {}?", best);
}

Error reserved_word_error(const CommandRow& row) {
  return with_hint(make_error(ErrorCode::unsupported, "{}: not in this version", row.name),
                   fmt::format("to run a program called {0}: ddprof -- {0}", row.name));
}

}  // namespace ddprof
