#include "cli/option_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "cli/option_table.hpp"
#include "cli/option_value.hpp"
#include "cli/show_config.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Options, ADropInCommandLineKeepsItsMeaning) {
  const Options options =
      parsed({"-S", "my-service", "-e", "sCPU f=199", "./prog", "--its-own-flag", "-S", "x", "--", "-p"});
  EXPECT_EQ(options.command, Command::wrap);
  EXPECT_EQ(options.service, "my-service");
  EXPECT_THAT(options.program, ElementsAre("./prog", "--its-own-flag", "-S", "x", "--", "-p"));
  ASSERT_EQ(options.events.size(), 1U);
  EXPECT_EQ(options.events[0].frequency, 199U);
}

TEST(Options, EverythingTheOriginalKnowsIsAccepted) {
  const Options options = parsed({"-S",
                                  "redis",
                                  "-E",
                                  "prod",
                                  "-V",
                                  "7.2",
                                  "-U",
                                  "unix:///run/apm.sock",
                                  "-H",
                                  "localhost",
                                  "-P",
                                  "8192",
                                  "-T",
                                  "a:1,b:2",
                                  "-I",
                                  "true",
                                  "--timeline",
                                  "-u",
                                  "30",
                                  "--preset",
                                  "cpu_only",
                                  "--switch_user",
                                  "www",
                                  "--nice",
                                  "-5",
                                  "-l",
                                  "notice",
                                  "-o",
                                  "stderr",
                                  "--show_config",
                                  "-b",
                                  "/run/statsd.sock",
                                  "--show_samples",
                                  "--enable",
                                  "true",
                                  "--worker_period",
                                  "10",
                                  "--api_key",
                                  "k",
                                  "--agentless",
                                  "no",
                                  "--runtime_id",
                                  "u",
                                  "--cpu_affinity",
                                  "0x3",
                                  "--do_export",
                                  "no",
                                  "--debug_pprof_prefix",
                                  "/tmp/p_",
                                  "--fault_info",
                                  "false",
                                  "--socket",
                                  "/tmp/s",
                                  "--stack_sample_size",
                                  "65528",
                                  "--initial-loaded-libs-check-delay",
                                  "0",
                                  "--loaded-libs-check-interval",
                                  "1000",
                                  "--remote_symbolization",
                                  "--disable_symbolization",
                                  "--no-reorder-events",
                                  "--maximum_pids",
                                  "-1",
                                  "redis-server",
                                  "/etc/redis/redis.conf"});
  EXPECT_THAT(options.program, ElementsAre("redis-server", "/etc/redis/redis.conf"));
  EXPECT_EQ(options.environment, "prod");
  EXPECT_EQ(options.service_version, "7.2");
  EXPECT_EQ(options.port, 8192);
  EXPECT_EQ(options.nice, -5);
  EXPECT_EQ(options.log_level, LogLevel::notice);
  EXPECT_EQ(options.log_mode, "stderr");
  EXPECT_EQ(options.stack_sample_bytes, 65528);
  EXPECT_EQ(options.upload_period_seconds, 30);
  EXPECT_EQ(options.maximum_pids, -1);
  EXPECT_TRUE(options.inlined_functions);
  EXPECT_TRUE(options.show_samples);
  EXPECT_FALSE(options.do_export);
  EXPECT_FALSE(options.fault_info);
  EXPECT_FALSE(options.reorder_events);
}

TEST(Options, EveryWayToWriteAValueIsTheSame) {
  for (const auto& args : std::vector<std::vector<const char*>>{{"--upload-period", "30", "x"},
                                                                {"--upload_period", "30", "x"},
                                                                {"--upload-period=30", "x"},
                                                                {"--upload_period=30", "x"},
                                                                {"-u", "30", "x"},
                                                                {"-u30", "x"}}) {
    const Options options = parsed(args);
    EXPECT_EQ(options.upload_period_seconds, 30) << args[0];
    EXPECT_THAT(options.program, ElementsAre("x")) << args[0];
  }
}

TEST(Options, FlagsTakeTrueFalseOrNothing) {
  EXPECT_TRUE(parsed({"--show-samples", "x"}).show_samples);
  EXPECT_FALSE(parsed({"--show-samples=false", "x"}).show_samples);
  EXPECT_FALSE(parsed({"--no-timeline", "x"}).timeline);
  EXPECT_FALSE(parsed({"--no_timeline", "x"}).timeline);
  EXPECT_FALSE(parsed({"--enable=false", "x"}).enable);
  EXPECT_FALSE(parsed({"--enable", "FALSE", "x"}).enable);
  EXPECT_FALSE(parsed({"-I0", "x"}).inlined_functions);
  EXPECT_TRUE(parsed({"-I", "x"}).inlined_functions);
  EXPECT_EQ(failure({"--enable=maybe", "x"}).message, "--enable maybe: must be true or false");
  EXPECT_EQ(failure({"--no-timeline=true", "x"}).message, "--no-timeline: takes no value");
  EXPECT_THAT(failure({"--no-service", "x"}).message, HasSubstr("unknown option --no-service"));
}

TEST(Options, AProgramCalledTrueIsNotTheValueOfAFlag) {
  EXPECT_THAT(parsed({"--timeline", "true"}).program, ElementsAre("true"));
}

TEST(Options, LettersMayBeRunTogether) {
  const Options options = parsed({"record", "-gqd5"});
  EXPECT_TRUE(options.global);
  EXPECT_TRUE(options.quiet);
  EXPECT_EQ(options.duration_seconds, 5);
}

TEST(Options, TheFirstWordDecides) {
  EXPECT_EQ(parsed({"record", "./prog"}).command, Command::record);
  EXPECT_EQ(parsed({"report", "cpu.pprof"}).command, Command::report);
  EXPECT_EQ(parsed({"./record"}).command, Command::wrap);
  EXPECT_THAT(parsed({"--", "view", "-R"}).program, ElementsAre("view", "-R"));
  EXPECT_THAT(parsed({"record", "report"}).program, ElementsAre("report"));
  for (const char* later : {"view", "diff", "serve", "top"}) {
    const auto options = OptionFixture{}.parse({later, "x"});
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().code, ErrorCode::unsupported);
    EXPECT_EQ(options.error().message, std::string(later) + ": not in this version");
    EXPECT_THAT(options.error().hint, HasSubstr("ddprof -- " + std::string(later)));
  }
}

TEST(Options, TheDoctorKnowsTheAgentAndNoPrograms) {
  const Options options = parsed({"doctor", "--json", "-U", "unix:///run/agent.sock"});
  EXPECT_EQ(options.command, Command::doctor);
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.url, "unix:///run/agent.sock");
  OptionFixture fixture;
  fixture.variables = {{"DD_AGENT_HOST", "10.0.0.1"}};
  EXPECT_EQ(fixture.parsed({"doctor"}).host, "10.0.0.1");
  EXPECT_THAT(failure({"doctor", "./prog"}).message, HasSubstr("looks at this machine"));
  EXPECT_EQ(failure({"doctor", "-F", "99"}).message,
            "--frequency: an option of ddprof and ddprof record, not of ddprof doctor");
}

TEST(Options, ASubcommandAfterOptionsIsAProgramAndSaysSo) {
  const Options options = parsed({"-q", "--preset", "cpu_only", "record", "./prog"});
  EXPECT_EQ(options.command, Command::wrap);
  EXPECT_THAT(options.program, ElementsAre("record", "./prog"));
  EXPECT_THAT(options.notices, ElementsAre(HasSubstr("running a program called record")));
  EXPECT_THAT(parsed({"--preset", "cpu_only", "--", "record"}).notices, IsEmpty());
}

TEST(Options, TargetsExcludeEachOther) {
  EXPECT_EQ(parsed({"-p", "12"}).command, Command::attach);
  EXPECT_EQ(parsed({"-g"}).command, Command::global);
  EXPECT_EQ(parsed({"record", "-p12"}).command, Command::record);
  EXPECT_THAT(failure({"-p", "12", "./prog"}).message, HasSubstr("./prog cannot be started too"));
  EXPECT_THAT(failure({"-g", "./prog"}).message, HasSubstr("./prog cannot be started too"));
  EXPECT_EQ(failure({"-g", "-p", "12"}).message, "-p and -g: choose one");
  EXPECT_THAT(failure({}).message, HasSubstr("nothing to profile"));
  EXPECT_THAT(failure({"record"}).message, HasSubstr("nothing to profile"));
  EXPECT_THAT(failure({"--"}).message, HasSubstr("nothing to profile"));
  EXPECT_EQ(failure({"-p", "0"}).message, "--pid 0: must be whole numbers from 1 to 4194304, or name:GLOB");
}

TEST(Options, DurationIsForThoseWhoStayInFront) {
  EXPECT_EQ(parsed({"record", "-d", "3", "x"}).duration_seconds, 3);
  EXPECT_EQ(parsed({"-p", "1", "-d", "3"}).duration_seconds, 3);
  EXPECT_THAT(failure({"-d", "3", "x"}).message, HasSubstr("--duration: the wrapped program decides"));
}

TEST(Options, ReportTakesFilesAndItsOwnOptions) {
  const Options options = parsed({"report", "cpu.pprof", "--top", "5"});
  EXPECT_THAT(options.files, ElementsAre("cpu.pprof"));
  EXPECT_EQ(options.top, 5);
  const Options filtered = parsed(
      {"report",    "--focus", "a",          "--focus=b", "--ignore",     "c",    "--thread",      "7",
       "--process", "app",     "--annotate", "main",      "--source-dir", "/src", "--sample-type", "cpu",
       "--modules", "--lines", "--json",     "cpu.pprof"});
  EXPECT_THAT(filtered.focus, ElementsAre("a", "b"));
  EXPECT_THAT(filtered.ignore, ElementsAre("c"));
  EXPECT_EQ(filtered.thread, "7");
  EXPECT_EQ(filtered.process, "app");
  EXPECT_EQ(filtered.annotate, "main");
  EXPECT_EQ(filtered.source_dir, "/src");
  EXPECT_EQ(filtered.sample_type, "cpu");
  EXPECT_TRUE(filtered.modules && filtered.lines && filtered.json);
  const Error foreign = failure({"report", "a", "-F", "9"});
  EXPECT_EQ(foreign.message, "--frequency: an option of ddprof and ddprof record, not of ddprof report");
  EXPECT_EQ(foreign.hint, "ddprof report --help");
  EXPECT_TRUE(parsed({"report"}).files.empty());
  const Options several =
      parsed({"report", "a", "b", "--since", "10m", "--service", "shop", "--callers", "f", "--callees", "g",
              "--only-module", "libc.so.6", "--own", "app", "--no-pager"});
  EXPECT_THAT(several.files, ElementsAre("a", "b"));
  EXPECT_EQ(several.since, "10m");
  EXPECT_EQ(several.service, "shop");
  EXPECT_EQ(several.callers + several.callees, "fg");
  EXPECT_EQ(several.only_module, "libc.so.6");
  EXPECT_EQ(several.own, "app");
  EXPECT_FALSE(several.pager);
}

TEST(Options, ListTakesOneFolder) {
  const Options options = parsed({"list", "/tmp/profiles", "--json", "--until", "1d"});
  EXPECT_EQ(options.command, Command::list);
  EXPECT_THAT(options.files, ElementsAre("/tmp/profiles"));
  EXPECT_EQ(options.until, "1d");
  EXPECT_EQ(failure({"list", "a", "b"}).message, "list: takes one folder");
  EXPECT_THAT(failure({"list", "--focus", "x"}).message, HasSubstr("not of ddprof list"));
}

TEST(Options, ConvertTakesTwoFilesAndAFormat) {
  const Options options = parsed({"convert", "a.pprof", "--to", "speedscope", "-"});
  EXPECT_EQ(options.command, Command::convert);
  EXPECT_THAT(options.files, ElementsAre("a.pprof", "-"));
  EXPECT_EQ(options.to, "speedscope");
  EXPECT_EQ(failure({"convert", "a"}).message, "convert: needs a file to read and one to write");
  EXPECT_EQ(failure({"convert", "a", "-"}).message, "convert: writing to a pipe needs a format");
  EXPECT_EQ(failure({"convert", "a", "b.pb", "-n", "9"}).message,
            "--top: an option of ddprof report, not of ddprof convert");
  EXPECT_THAT(failure({"convert", "a", "b", "--to", "bmp"}).message, HasSubstr("bmp"));
}

TEST(Options, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  OptionFixture fixture;
  fixture.files["./ddprof.toml"] =
      "# mine\nservice = \"from-file\"\nenvironment = \"from-file\"\ntags = \"a:1\"\n";
  fixture.variables = {{"DD_SERVICE", "from-environment"}, {"DD_ENV", "from-environment"}};
  const Options options = fixture.parsed({"-S", "from-words", "x"});
  EXPECT_EQ(options.service, "from-words");
  EXPECT_EQ(options.environment, "from-environment");
  EXPECT_EQ(options.tags, "a:1");
  EXPECT_EQ(describe(origin_of(options, "service")), "command line");
  EXPECT_EQ(describe(origin_of(options, "environment")), "DD_ENV");
  EXPECT_EQ(describe(origin_of(options, "tags")), "./ddprof.toml:4");
  EXPECT_EQ(describe(origin_of(options, "host")), "default");
  EXPECT_EQ(options.config, "./ddprof.toml");
}

TEST(Options, EventsOfAStrongerSourceReplaceThoseOfAWeakerOne) {
  OptionFixture fixture;
  fixture.files["./ddprof.toml"] = "event = [\"hINST\", \"hCMISS\"]\n";
  EXPECT_EQ(fixture.parsed({"x"}).events.size(), 2U);
  const Options options = fixture.parsed({"-e", "sCPU", "-e", "sPF; sCS", "x"});
  EXPECT_THAT(options.event_texts, ElementsAre("sCPU", "sPF; sCS"));
  ASSERT_EQ(options.events.size(), 3U);
  EXPECT_EQ(options.events[2].name, "sCS");
}

TEST(Options, AnEmptyVariableCountsAsUnset) {
  OptionFixture fixture;
  fixture.variables["DD_PROFILING_UPLOAD_PERIOD"] = "";
  EXPECT_EQ(fixture.parsed({"x"}).upload_period_seconds, 59);
}

TEST(Options, TheConfigFileMustExistOnlyWhenItIsNamed) {
  EXPECT_EQ(parsed({"x"}).config, "");
  EXPECT_EQ(failure({"--config", "my.toml", "x"}).message,
            "--config: open my.toml: No such file or directory");
  OptionFixture fixture;
  fixture.variables["DD_PROFILING_NATIVE_CONFIG"] = "my.toml";
  EXPECT_THAT(fixture.failure({"x"}).message, HasSubstr("DD_PROFILING_NATIVE_CONFIG: open my.toml"));
  fixture.files["my.toml"] = "upload_period = 10\n";
  EXPECT_EQ(fixture.parsed({"x"}).upload_period_seconds, 10);
}

TEST(Options, AWrongValueNamesThePlaceItCameFrom) {
  EXPECT_EQ(failure({"--stack-sample-size", "70000", "x"}).message,
            "--stack-sample-size 70000: must be a multiple of 8 up to 65528");
  EXPECT_EQ(failure({"--stack-sample-size", "1001", "x"}).message,
            "--stack-sample-size 1001: must be a multiple of 8 up to 65528");
  EXPECT_EQ(failure({"-P", "99999", "x"}).message, "--port 99999: must be a whole number from 1 to 65535");
  EXPECT_EQ(failure({"-F", "fast", "x"}).message,
            "--frequency fast: must be a whole number from 1 to 100000");
  EXPECT_EQ(failure({"--maximum-pids", "-2", "x"}).message,
            "--maximum-pids -2: must be a whole number, -1 or more");
  EXPECT_THAT(failure({"-l", "noise", "x"}).message,
              HasSubstr("one of debug, informational, notice, warn, error"));
  EXPECT_THAT(failure({"--preset", "cpu-only", "x"}).message, HasSubstr("did you mean cpu_only?"));
  EXPECT_THAT(failure({"--cpu-affinity", "0x0", "x"}).message, HasSubstr("hexadecimal mask"));

  OptionFixture fixture;
  fixture.variables["DD_TRACE_AGENT_PORT"] = "http";
  EXPECT_EQ(fixture.failure({"x"}).message,
            "DD_TRACE_AGENT_PORT=http: must be a whole number from 1 to 65535");
  fixture.variables.clear();
  fixture.files["./ddprof.toml"] = "\nport = 0\n";
  EXPECT_EQ(fixture.failure({"x"}).message,
            "./ddprof.toml:2: port = 0: must be a whole number from 1 to 65535");
  fixture.files["./ddprof.toml"] = "frequncy = 9";
  EXPECT_EQ(fixture.failure({"x"}).message,
            "./ddprof.toml:1: unknown option frequncy; did you mean frequency?");
  fixture.files["./ddprof.toml"] = "pid = 9";
  EXPECT_EQ(fixture.failure({"x"}).message, "./ddprof.toml:1: pid belongs on the command line");
  fixture.files["./ddprof.toml"] = "service = ['a', 'b']";
  EXPECT_EQ(fixture.failure({"x"}).message, "./ddprof.toml:1: service takes one value");
}

TEST(Options, AMistypedOptionGetsASuggestion) {
  EXPECT_EQ(failure({"--frequncy", "9", "x"}).message,
            "unknown option --frequncy; did you mean --frequency?");
  EXPECT_EQ(failure({"--upload_perod=9", "x"}).message,
            "unknown option --upload_perod; did you mean --upload-period?");
  EXPECT_EQ(failure({"--zzzzzz", "x"}).message, "unknown option --zzzzzz");
  EXPECT_EQ(failure({"--zzzzzz", "x"}).hint, "ddprof --help-extended");
  EXPECT_EQ(failure({"--freq", "9", "x"}).message, "unknown option --freq; did you mean --frequency?");
  EXPECT_THAT(failure({"-Z", "x"}).message, HasSubstr("unknown option -Z"));
}

TEST(Options, AForgottenValueIsNotTakenFromTheNextOption) {
  EXPECT_EQ(failure({"-S"}).message, "-S: needs a value (NAME)");
  EXPECT_EQ(failure({"-S", "-e", "sCPU", "x"}).message, "-S: needs a value (NAME), but -e follows");
  EXPECT_EQ(parsed({"--service=-e", "x"}).service, "-e");
  EXPECT_EQ(parsed({"--output", "-", "x"}).output, "-");
}

TEST(Options, HelpIsThereEvenWhenTheConfigurationIsBroken) {
  OptionFixture fixture;
  fixture.files["./ddprof.toml"] = "][";
  EXPECT_EQ(fixture.parsed({"--help"}).command, Command::help);
  EXPECT_EQ(fixture.parsed({"-v"}).command, Command::version);
  EXPECT_EQ(fixture.parsed({"--help_extended"}).command, Command::help_extended);
  EXPECT_EQ(fixture.parsed({"--help-markdown"}).command, Command::help_markdown);
  EXPECT_EQ(fixture.parsed({"-e", "help"}).command, Command::help_events);
  EXPECT_EQ(fixture.parsed({"record", "--help"}).command, Command::help_command);
  EXPECT_EQ(failure({"--help=me"}).message, "--help: takes no value");
  EXPECT_EQ(parsed({"./prog", "--help"}).command, Command::wrap);
}

TEST(Options, ASuggestionComesFromTheOptionsOfTheCommand) {
  EXPECT_EQ(failure({"report", "--fokus", "x"}).message,
            "unknown option --fokus of ddprof report; did you mean --focus?");
  const Error strange = failure({"report", "--sort", "x"});
  EXPECT_THAT(strange.message,
              HasSubstr("unknown option --sort of ddprof report; it has --service, --top, "));
  EXPECT_THAT(strange.message, testing::Not(HasSubstr("--port")));
  EXPECT_EQ(strange.hint, "ddprof report --help");
  EXPECT_THAT(failure({"record", "--zzz"}).hint, "ddprof record --help");
  EXPECT_THAT(failure({"list", "--no-timeline"}).message, HasSubstr("--timeline: an option of ddprof and"));
}

// An option that would be ignored is refused where it is typed; settings of a cluster are for every command.
TEST(Options, EveryOptionIsAcceptedByItsCommandsAlone) {
  for (const CommandRow& command : command_table()) {
    if (!command.command) continue;
    for (const OptionRow& row : option_table()) {
      if (std::holds_alternative<std::monostate>(row.slot)) continue;
      const std::string name(command.name);
      const std::string written = fmt::format("--{}={}", row.name, is_flag(row) ? "true" : "1");
      const auto options = command.name.empty() ? OptionFixture{}.parse({written.c_str()})
                                                : OptionFixture{}.parse({name.c_str(), written.c_str()});
      const bool is_foreign =
          !options.ok() && options.error().message.find(": an option of ") != std::string::npos;
      EXPECT_EQ(is_foreign, !belongs_to(row, *command.command)) << name << " " << row.name;
    }
  }
  EXPECT_EQ(failure({"--top", "3", "x"}).message, "--top: an option of ddprof report, not of ddprof");
  OptionFixture fixture;
  fixture.files["./ddprof.toml"] = "top = 5";
  EXPECT_EQ(fixture.failure({"x"}).message, "./ddprof.toml:1: top belongs on the command line");
}

TEST(Options, HelpKnowsEveryWayToAskForACommand) {
  for (const auto& args : std::vector<std::vector<const char*>>{
           {"help", "report"}, {"report", "--help"}, {"report", "-h"}, {"--help", "report"}}) {
    EXPECT_EQ(parsed(args).command, Command::help_command) << args[0];
    EXPECT_EQ(parsed(args).topic, Command::report) << args[0];
  }
  for (const auto& args : std::vector<std::vector<const char*>>{{"help"}, {"--help"}, {"--help", "./prog"}})
    EXPECT_EQ(parsed(args).command, Command::help) << args[0];
  EXPECT_EQ(parsed({"help", "ddprof"}).topic, Command::wrap);
  EXPECT_EQ(parsed({"help", "ddprof"}).command, Command::help_command);
  EXPECT_EQ(parsed({"help", "--help"}).topic, Command::help);
  EXPECT_EQ(parsed({"doctor", "--help-extended"}).topic, Command::doctor);
  EXPECT_EQ(parsed({"help", "doctor", "--help-extended"}).command, Command::help_extended);
  EXPECT_EQ(parsed({"help", "doctor", "--help-extended"}).topic, Command::doctor);
  EXPECT_EQ(parsed({"list", "--help-man"}).command, Command::help_man);
  EXPECT_EQ(parsed({"--help-commands"}).command, Command::help_commands);
  EXPECT_EQ(failure({"help", "recrod"}).message, "help: no command recrod; did you mean ddprof record?");
  EXPECT_EQ(failure({"help", "view"}).message, "view: not in this version");
  EXPECT_EQ(failure({"help", "record", "report"}).message, "help: takes one command");
}

TEST(Options, ListAndCompletionTakeOneWord) {
  EXPECT_THAT(parsed({"list"}).files, IsEmpty());
  EXPECT_THAT(parsed({"list", "/var/lib/ddprof"}).files, ElementsAre("/var/lib/ddprof"));
  EXPECT_EQ(failure({"list", "a", "b"}).message, "list: takes one folder");
  EXPECT_EQ(parsed({"completion", "zsh"}).command, Command::completion);
  EXPECT_EQ(failure({"completion"}).message, "completion: needs the name of a shell");
  EXPECT_EQ(failure({"completion", "bsh"}).message, "completion bsh: no such shell here; did you mean bash?");
}

TEST(Options, ConfigurationAloneNeedsNoTarget) {
  EXPECT_EQ(parsed({"--show-config"}).command, Command::configuration);
  EXPECT_EQ(parsed({"--capture-config", "f.toml"}).command, Command::configuration);
}

TEST(Options, TheServiceIsNamedAfterTheProgram) {
  const Options options = parsed({"/usr/bin/redis-server"});
  EXPECT_EQ(options.service, "redis-server");
  EXPECT_EQ(describe(origin_of(options, "service")), "default: the program's name");
  EXPECT_EQ(parsed({"-g"}).service, "myservice");
  EXPECT_EQ(parsed({"-p", "3"}).service, "");
}

TEST(Options, NoTwoOptionsShareANameALetterOrAVariable) {
  for (const OptionRow& row : option_table()) {
    for (const OptionRow& other : option_table()) {
      if (&row == &other) continue;
      EXPECT_NE(row.name, other.name);
      EXPECT_TRUE(row.letter == 0 || row.letter != other.letter) << row.name << " and " << other.name;
      EXPECT_TRUE(row.environment.empty() || row.environment != other.environment) << row.environment;
    }
  }
}

TEST(Options, TheStructsDefaultsAreWhatParsingNothingYields) {
  const Options nothing = parsed({"--preset", "cpu_only", "-S", "s", "x"});
  for (const OptionRow& row : option_table()) {
    if (row.name == "preset" || row.name == "service") continue;
    EXPECT_EQ(option_text(nothing, row), option_text(Options{}, row)) << row.name;
  }
}

std::optional<Options> unprofiled(const OptionFixture& fixture, const std::vector<const char*>& args) {
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = fixture.variables.find(name);
    return found == fixture.variables.end() ? std::nullopt : std::optional(found->second);
  };
  const auto read_file = [&](const std::string& path) -> Result<std::string> {
    const auto found = fixture.files.find(path);
    if (found == fixture.files.end()) return make_error(ErrorCode::not_found, "open {}", path);
    return found->second;
  };
  return unprofiled_options(args, environment, read_file);
}

TEST(UnprofiledOptions, RunTheProgramWhateverTheSettings) {
  const auto options = unprofiled({.variables = {{"DD_PROFILING_UPLOAD_PERIOD", "soon"}}},
                                  {"-e", "nonsense", "-F", "many", "./server", "--port", "80"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->program, ElementsAre("./server", "--port", "80"));
  EXPECT_EQ(options->command, Command::wrap);
  EXPECT_FALSE(options->enable);
}

TEST(UnprofiledOptions, GiveTheProgramNoMoreRights) {
  const OptionFixture fixture{.variables = {{"DD_PROFILING_DROP_CAPS", "true"}},
                              .files = {{"./ddprof.toml", "switch_user = \"nobody\"\nnonsense = 1\n"}}};
  const auto options = unprofiled(fixture, {"-e", "nonsense", "./server"});
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->drop_caps);
  EXPECT_EQ(options->switch_user, "nobody");
  EXPECT_EQ(unprofiled(fixture, {"--switch-user", "me", "-F", "x", "./server"})->switch_user, "me");
  EXPECT_FALSE(unprofiled({.files = {{"./ddprof.toml", "not TOML\n"}}}, {"./server"}))
      << "nobody knows its rights";
  EXPECT_FALSE(unprofiled({}, {"--drop-caps=perhaps", "./server"}));
}

TEST(UnprofiledOptions, AreOnlyForThePlainWrapper) {
  EXPECT_FALSE(unprofiled({}, {"record", "-e", "nonsense", "./server"}));
  EXPECT_FALSE(unprofiled({}, {"-p", "12", "-e", "nonsense"}));
  EXPECT_FALSE(unprofiled({}, {"-p", "12", "./server"}));
  EXPECT_FALSE(unprofiled({}, {"--no-such-option", "./server"})) << "nobody knows where the program begins";
}

}  // namespace
}  // namespace ddprof
