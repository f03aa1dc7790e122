#include "cli/option_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "sCPU@199 sPF@99", "hINST/1000"
std::string events_of(const Options& options) {
  std::string text;
  for (const EventSpec& event : options.events) {
    if (!text.empty()) text += ' ';
    text += event.name + (event.frequency != 0 ? "@" : "/") + std::to_string(event.frequency + event.period);
  }
  return text;
}

std::string events_with(const std::vector<const char*>& args) { return events_of(parsed(args)); }

TEST(OptionRules, WithoutEventsCpuTimeAloneIsProfiled) {
  EXPECT_EQ(events_with({"x"}), "sCPU@99") << "nothing is put into a program that was not asked for";
  EXPECT_EQ(events_with({"record", "x"}), "sCPU@99");
  EXPECT_EQ(events_with({"-p", "1"}), "sCPU@99");
  EXPECT_THAT(parsed({"x"}).notices, IsEmpty());
}

TEST(OptionRules, HeapPresetsSampleAllocations) {
  EXPECT_EQ(events_with({"--preset", "default", "x"}), "sCPU@99 sALLOC/524288");
  EXPECT_EQ(events_with({"--preset", "alloc_only", "x"}), "sALLOC/524288");
  const Options live = parsed({"--preset", "cpu_live_heap", "x"});
  EXPECT_EQ(events_of(live), "sCPU@99 sALLOC/524288");
  EXPECT_TRUE(live.events[1].is_live);
  EXPECT_FALSE(parsed({"--preset", "default", "x"}).events[1].is_live);
  EXPECT_TRUE(parsed({"-e", "sALLOC m=l", "x"}).events[0].is_live);
  EXPECT_THAT(live.warnings, IsEmpty());
}

TEST(OptionRules, AProgramThatProfilesItselfSaysWhetherItsAllocationsCanBeSampled) {
  EXPECT_EQ(events_with({"--preset", "default", "-p", "1", "--controlled", "hooked"}),
            "sCPU@99 sALLOC/524288");
  EXPECT_EQ(events_with({"--preset", "alloc_only", "-p", "1", "--controlled", "hooked"}), "sALLOC/524288");
  const Options bare = parsed({"--preset", "cpu_live_heap", "-p", "1", "--controlled", "bare"});
  EXPECT_EQ(events_of(bare), "sCPU@99");
  EXPECT_THAT(bare.warnings, ElementsAre(HasSubstr("allocations do not pass libddprof.so")));
  EXPECT_THAT(failure({"--preset", "alloc_only", "-p", "1", "--controlled", "bare"}).hint,
              HasSubstr("LD_PRELOAD"));
}

TEST(OptionRules, AllocationsOfARunningProgramAreAnsweredClearly) {
  EXPECT_EQ(events_with({"--preset", "default", "-p", "1"}), "sCPU@99");
  const Error error = failure({"--preset", "alloc_only", "-p", "1"});
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.message, "preset alloc_only: allocations of a program that runs already cannot be sampled");
  EXPECT_EQ(error.hint, "start the program with ddprof");
  const Options mixed = parsed({"-e", "sCPU; sALLOC", "-g"});
  EXPECT_EQ(events_of(mixed), "sCPU@99");
  EXPECT_THAT(mixed.warnings,
              ElementsAre(HasSubstr("event sALLOC: allocations of a program that runs already")));
  OptionFixture fixture;
  fixture.variables = {{"DD_PROFILING_NATIVE_PRESET", "cpu_live_heap"}};
  EXPECT_THAT(fixture.parsed({"-p", "1"}).warnings, IsEmpty());
  EXPECT_THAT(fixture.parsed({"-p", "1"}).notices, ElementsAre(HasSubstr("preset cpu_live_heap")));
}

TEST(OptionRules, WhatHasNoEffectIsSaidOnceWhereverItWasSet) {
  const Options typed = parsed({"--preset", "cpu_only", "--no-reorder-events", "--socket", "/s", "x"});
  EXPECT_THAT(typed.warnings, ElementsAre("--reorder-events has no effect in this version",
                                          "--socket has no effect in this version"));
  EXPECT_THAT(typed.notices, IsEmpty());
  OptionFixture fixture;
  fixture.variables = {{"DD_PROFILING_REORDER_EVENTS", "true"}};
  fixture.files["./ddprof.toml"] = "socket = '/s'\n";
  const Options quiet = fixture.parsed({"--preset", "cpu_only", "x"});
  EXPECT_THAT(quiet.warnings, IsEmpty());
  EXPECT_THAT(quiet.notices,
              ElementsAre("--reorder-events (DD_PROFILING_REORDER_EVENTS) has no effect in this version",
                          "--socket (./ddprof.toml:1) has no effect in this version"));
}

TEST(OptionRules, APresetIsOnlyAddedToEventsWhenAskedFor) {
  EXPECT_EQ(events_with({"-e", "hINST", "x"}), "hINST@99");
  EXPECT_EQ(events_with({"-e", "hINST", "--preset", "cpu_only", "x"}), "hINST@99 sCPU@99");
  EXPECT_EQ(events_with({"-e", "sCPU f=7", "--preset", "cpu_only", "x"}), "sCPU@7");
}

TEST(OptionRules, FrequencyIsShortForTheRateOfCpuTime) {
  EXPECT_EQ(events_with({"-F", "199", "x"}), "sCPU@199");
  EXPECT_EQ(events_with({"-F", "199", "-e", "sCPU; sPF", "x"}), "sCPU@199 sPF@99");
  EXPECT_EQ(events_with({"-F", "199", "-e", "sCPU p=5", "x"}), "sCPU@199");
  const Error error = failure({"-F", "199", "-e", "hINST", "x"});
  EXPECT_THAT(error.message, HasSubstr("not among the events"));
  EXPECT_THAT(error.hint, HasSubstr("f=199"));
}

TEST(OptionRules, AFrequencyFromTheFileYieldsToARateOnTheCommandLine) {
  OptionFixture fixture;
  fixture.files["./ddprof.toml"] = "frequency = 49\n";
  EXPECT_EQ(events_of(fixture.parsed({"x"})), "sCPU@49");
  EXPECT_EQ(events_of(fixture.parsed({"-e", "sCPU", "x"})), "sCPU@49");
  EXPECT_EQ(events_of(fixture.parsed({"-e", "sCPU f=7", "x"})), "sCPU@7");
  EXPECT_EQ(events_of(fixture.parsed({"-e", "hINST", "x"})), "hINST@99");
}

TEST(OptionRules, APrivilegeThatCannotBeGivenUpIsNotIgnored) {
  EXPECT_TRUE(parsed({"--drop-caps", "-p", "1"}).drop_caps);
  EXPECT_THAT(failure({"--drop-caps", "-g"}).message, HasSubstr("--drop-caps: -g"));
  EXPECT_EQ(parsed({"--switch-user", "www", "x"}).switch_user, "www");
  EXPECT_THAT(failure({"--switch-user", "www", "-p", "1"}).message, HasSubstr("--switch-user: "));
  OptionFixture fixture;
  fixture.variables = {{"DD_PROFILING_DROP_CAPS", "true"}, {"DD_PROFILING_SWITCH_USER", "www"}};
  EXPECT_TRUE(fixture.parsed({"x"}).drop_caps);
  EXPECT_EQ(fixture.parsed({"-p", "1"}).switch_user, "www");  // which has nobody to be used for
}

TEST(OptionRules, PeriodIsAnotherNameOfUploadPeriod) {
  EXPECT_EQ(parsed({"--period", "60", "x"}).upload_period_seconds, 60);
  EXPECT_EQ(parsed({"--period", "60", "-u", "60", "x"}).upload_period_seconds, 60);
  EXPECT_THAT(failure({"--period", "60", "-u", "59", "x"}).message, HasSubstr("two names of one setting"));
  OptionFixture fixture;
  fixture.variables = {{"DD_PROFILING_PERIOD", "60"}};
  EXPECT_EQ(fixture.parsed({"x"}).upload_period_seconds, 60);
  EXPECT_EQ(fixture.parsed({"-u", "10", "x"}).upload_period_seconds, 10);
  fixture.variables = {{"DD_PROFILING_UPLOAD_PERIOD", "10"}};
  EXPECT_EQ(fixture.parsed({"--period", "60", "x"}).upload_period_seconds, 60);
}

TEST(OptionRules, ThePartThatIsSampledFitsIntoThePeriod) {
  EXPECT_EQ(parsed({"--cpu-duration", "15", "--period", "60", "x"}).cpu_duration_seconds, 15);
  EXPECT_EQ(parsed({"--cpu-duration", "60", "--period", "60", "x"}).cpu_duration_seconds, 60);
  EXPECT_EQ(failure({"--cpu-duration", "61", "--period", "60", "x"}).message,
            "--cpu-duration 61: longer than the period, which is 60 s");
  OptionFixture fixture;
  fixture.variables = {{"DD_PROFILING_CPU_DURATION", "90"}};
  const Options lenient = fixture.parsed({"--preset", "cpu_only", "x"});
  EXPECT_FALSE(lenient.cpu_duration_seconds);
  EXPECT_THAT(lenient.notices, ElementsAre(HasSubstr("DD_PROFILING_CPU_DURATION is left alone")));
}

TEST(OptionRules, ABadEventFailsWithItsOwnSentence) {
  EXPECT_EQ(failure({"-e", "sCPUU", "x"}).message, "event sCPUU: unknown name; did you mean sCPU?");
}

TEST(OptionRules, FiltersChooseAmongTheProcessesOfAHost) {
  EXPECT_THAT(parsed({"-g", "--include", "name:a*", "--include", "user:0"}).include,
              ElementsAre("name:a*", "user:0"));
  EXPECT_EQ(failure({"--include", "name:a*", "x"}).message,
            "--include: chooses among the processes of the whole host");
  EXPECT_THAT(failure({"-g", "--exclude", "nam:a*"}).message, HasSubstr("did you mean name?"));
}

}  // namespace
}  // namespace ddprof
