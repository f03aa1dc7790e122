#include "collect/event_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include "collect/event_table.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

EventSpec one(std::string_view text) {
  auto events = parse_events(text);
  EXPECT_TRUE(events.ok()) << text << ": " << (events.ok() ? "" : events.error().message);
  if (!events.ok() || events->size() != 1) return {};
  return events->front();
}

std::string failure(std::string_view text) {
  const auto events = parse_events(text);
  EXPECT_FALSE(events.ok()) << text;
  return events.ok() ? std::string() : events.error().message;
}

TEST(EventSpec, CpuTimeIsATaskClockInNanosecondsAt99Hertz) {
  const EventSpec cpu = one("sCPU");
  EXPECT_EQ(cpu.kind, EventSpec::Kind::software);
  EXPECT_EQ(cpu.config, static_cast<std::uint64_t>(PERF_COUNT_SW_TASK_CLOCK));
  EXPECT_EQ(cpu.unit, "nanoseconds");
  EXPECT_TRUE(cpu.is_clock);
  EXPECT_EQ(cpu.frequency, 99U);
  EXPECT_EQ(cpu.period, 0U);
  EXPECT_EQ(default_cpu_event().name, "sCPU");
  EXPECT_EQ(default_cpu_event().frequency, 99U);
}

TEST(EventSpec, AcceptsEveryNameOfTheOriginal) {
  for (const char* name :
       {"sCPU", "sALLOC", "sPF",   "sPFMAJ", "sPFMIN", "sCS",     "sMig",   "sALGN", "sEMU",  "sDUM",
        "hCPU", "hREF",   "hINST", "hCREF",  "hCMISS", "hBRANCH", "hBMISS", "hBUS",  "hBSTF", "hBSTB"}) {
    const EventSpec event = one(name);
    EXPECT_EQ(event.name, name);
    EXPECT_FALSE(event.label.empty());
    EXPECT_NE(event.frequency == 0, event.period == 0) << name << ": exactly one of frequency and period";
    EXPECT_EQ(event.kind == EventSpec::Kind::hardware, name[0] == 'h') << name;
  }
}

TEST(EventSpec, AcceptsTheNamesOfPerf) {
  EXPECT_EQ(one("task-clock").name, "sCPU");
  EXPECT_EQ(one("cpu-clock").name, "sCPU");
  EXPECT_EQ(one("page-faults").name, "sPF");
  EXPECT_EQ(one("context-switches").name, "sCS");
  EXPECT_EQ(one("cycles").config, static_cast<std::uint64_t>(PERF_COUNT_HW_CPU_CYCLES));
  EXPECT_EQ(one("instructions f=500").frequency, 500U);
  EXPECT_EQ(one("cache-misses").name, "hCMISS");
  EXPECT_EQ(one("branch-misses").name, "hBMISS");
}

TEST(EventSpec, NamesAndLabelsAreUnique) {
  for (const KnownEvent& left : known_events()) {
    for (const KnownEvent& right : known_events()) {
      if (&left == &right) continue;
      EXPECT_NE(left.name, right.name);
      EXPECT_NE(left.label, right.label);
      EXPECT_TRUE(left.alias.empty() || left.alias != right.alias) << left.alias;
    }
  }
}

TEST(EventSpec, EveryAliasOfAKeyMeansTheSame) {
  for (const char* text : {"sCPU f=199", "sCPU freq=199", "sCPU frequency=199", "sCPU,f=199", "sCPU, f = 199",
                           "f=199 sCPU", "e=sCPU f=199", "event=sCPU,frequency=199", "eventname=sCPU f=0xc7",
                           "  ev=sCPU\tf=199 ,", ";sCPU f=199;"}) {
    EXPECT_EQ(one(text).name, "sCPU") << text;
    EXPECT_EQ(one(text).frequency, 199U) << text;
    EXPECT_EQ(one(text).period, 0U) << text;
  }
  for (const char* text : {"hINST p=1000", "hINST per=1000", "hINST period=1000"}) {
    EXPECT_EQ(one(text).period, 1000U) << text;
    EXPECT_EQ(one(text).frequency, 0U) << text;
  }
  for (const char* text : {"sCPU l=mine", "sCPU label=mine"}) EXPECT_EQ(one(text).label, "mine");
  for (const char* text : {"sCPU s=0.5", "sCPU scale=0.5", "sCPU value_scale=0.5"}) {
    EXPECT_DOUBLE_EQ(one(text).value_scale, 0.5);
  }
  for (const char* text : {"sCPU st=1024", "sCPU stcksz=1024", "sCPU stack_sample_size=1024"}) {
    EXPECT_EQ(one(text).stack_sample_size, 1024U);
  }
}

TEST(EventSpec, SemicolonsSeparateEvents) {
  const auto events = parse_events("sCPU f=199; hINST p=1000000 ;; sched:sched_switch");
  ASSERT_TRUE(events.ok());
  ASSERT_EQ(events->size(), 3U);
  EXPECT_EQ((*events)[0].frequency, 199U);
  EXPECT_EQ((*events)[1].period, 1000000U);
  EXPECT_EQ((*events)[2].kind, EventSpec::Kind::tracepoint);
}

TEST(EventSpec, ATracepointHasAGroupInEitherForm) {
  for (const char* text : {"sched:sched_switch", "e=sched_switch g=sched", "sched_switch gr=sched",
                           "ev=sched_switch,groupname=sched", "e=sched:sched_switch"}) {
    const EventSpec event = one(text);
    EXPECT_EQ(event.kind, EventSpec::Kind::tracepoint) << text;
    EXPECT_EQ(event.tracepoint_group, "sched") << text;
    EXPECT_EQ(event.tracepoint_name, "sched_switch") << text;
    EXPECT_EQ(event.name, "sched:sched_switch") << text;
    EXPECT_EQ(event.period, 1U) << text;
  }
  EXPECT_EQ(one("sched:sched_switch id=312").config, 312U);
}

TEST(EventSpec, ATracepointNameCannotLeaveTracefs) {
  EXPECT_THAT(failure("../../etc:passwd"), HasSubstr("letters, digits"));
  EXPECT_THAT(failure("sched:../x"), HasSubstr("letters, digits"));
  EXPECT_THAT(failure("sched:"), HasSubstr("letters, digits"));
  EXPECT_THAT(failure(":sched_switch"), HasSubstr("no group"));
  EXPECT_THAT(failure("sched:sched_switch g=sched"), HasSubstr("twice"));
}

TEST(EventSpec, TheValueMayComeFromAnArgumentARegisterOrTheRawRecord) {
  const EventSpec argument = one("probe:f n=2");
  EXPECT_EQ(argument.value_source, EventSpec::ValueSource::register_argument);
  EXPECT_EQ(argument.argument, 2U);
  EXPECT_FALSE(argument.argument_is_register_number);
  const EventSpec number = one("probe:f regno=0");
  EXPECT_EQ(number.value_source, EventSpec::ValueSource::register_argument);
  EXPECT_TRUE(number.argument_is_register_number);
  const EventSpec raw = one("syscalls:sys_enter_write o=32 z=4");
  EXPECT_EQ(raw.value_source, EventSpec::ValueSource::raw_field);
  EXPECT_EQ(raw.raw_offset, 32U);
  EXPECT_EQ(raw.raw_size, 4U);
  EXPECT_EQ(one("syscalls:sys_enter_write rawoff=32").raw_size, 8U);

  EXPECT_THAT(failure("probe:f n=2 o=8"), HasSubstr("give one"));
  EXPECT_THAT(failure("probe:f n=0"), HasSubstr("from 1 to 6"));
  EXPECT_THAT(failure("probe:f r=99"), HasSubstr("from 0 to 23"));
  EXPECT_THAT(failure("probe:f z=4"), HasSubstr("needs raw_offset"));
  EXPECT_THAT(failure("probe:f o=0 z=3"), HasSubstr("1, 2, 4 or 8"));
  EXPECT_THAT(failure("sCPU o=0"), HasSubstr("only tracepoints"));
}

TEST(EventSpec, RefusesRatesThatCannotBe) {
  EXPECT_EQ(failure("sCPU f=0"), "event sCPU: frequency 0: must be a whole number from 1 to 100000");
  EXPECT_THAT(failure("sCPU f=-5"), HasSubstr("frequency -5: must be"));
  EXPECT_THAT(failure("sCPU f=fast"), HasSubstr("frequency fast: must be"));
  EXPECT_THAT(failure("sCPU f=99Hz"), HasSubstr("frequency 99Hz: must be"));
  EXPECT_THAT(failure("sCPU f=1e3"), HasSubstr("must be a whole number"));
  EXPECT_THAT(failure("sCPU f=200000"), HasSubstr("to 100000"));
  EXPECT_THAT(failure("sCPU f=99999999999999999999999"), HasSubstr("to 100000"));
  EXPECT_THAT(failure("sCPU p=0"), HasSubstr("period 0: must be"));
  EXPECT_THAT(failure("sCPU f=99 p=1000"), HasSubstr("not both"));
  EXPECT_THAT(failure("sCPU f="), HasSubstr("f has no value"));
  EXPECT_THAT(failure("sALLOC f=99"), HasSubstr("give a period"));
}

TEST(EventSpec, SuggestsTheNearestName) {
  EXPECT_EQ(failure("sCPUU"), "event sCPUU: unknown name; did you mean sCPU?");
  EXPECT_THAT(failure("scpu"), HasSubstr("did you mean sCPU?"));
  EXPECT_THAT(failure("pagefaults"), HasSubstr("did you mean page-faults?"));
  EXPECT_THAT(failure("sCPU frequncy=9"), HasSubstr("unknown key frequncy; did you mean frequency?"));
  EXPECT_THAT(failure("sCPU hz=9"), HasSubstr("unknown key hz"));
  const auto unknown = parse_events("whatever");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "event whatever: unknown name");
  EXPECT_THAT(unknown.error().hint, HasSubstr("ddprof -e help"));
}

TEST(EventSpec, RefusesWhatIsIncompleteOrRepeated) {
  EXPECT_THAT(failure(""), HasSubstr("nothing is named"));
  EXPECT_THAT(failure(" ; ,; "), HasSubstr("nothing is named"));
  EXPECT_THAT(failure("f=99"), HasSubstr("has no name"));
  EXPECT_THAT(failure("sCPU hINST"), HasSubstr("\"sCPU\" and \"hINST\""));
  EXPECT_THAT(failure("sCPU f=9 freq=10"), HasSubstr("\"9\" and \"10\""));
  EXPECT_THAT(failure("=5"), HasSubstr("unknown key"));
  EXPECT_THAT(failure("sCPU st=1001"), HasSubstr("multiple of 8"));
  EXPECT_THAT(failure("sCPU st=70000"), HasSubstr("to 65528"));
  EXPECT_THAT(failure("sCPU s=0"), HasSubstr("above 0"));
  EXPECT_THAT(failure("sCPU s=inf"), HasSubstr("above 0"));
  EXPECT_THAT(failure("sCPU id=3"), HasSubstr("only tracepoints"));
}

TEST(EventSpec, OnlyAllocationsCanBeLive) {
  EXPECT_EQ(one("sCPU m=s").name, "sCPU");
  EXPECT_EQ(one("sALLOC mode=l").kind, EventSpec::Kind::allocation);
  EXPECT_EQ(one("sALLOC m=*").period, 524288U);
  EXPECT_THAT(failure("sCPU m=l"), HasSubstr("only allocations"));
  EXPECT_THAT(failure("sCPU m=x"), HasSubstr("must be s (sum)"));
}

TEST(EventSpec, PresetsNameTheirEvents) {
  const auto names = [](std::string_view preset, bool attaching) {
    std::string text;
    const auto events = preset_events(preset, attaching);
    if (!events.ok()) return events.error().message;
    for (const EventSpec& event : *events) text += event.name + " ";
    return text;
  };
  EXPECT_EQ(names("default", false), "sCPU sALLOC ");
  EXPECT_EQ(names("default", true), "sCPU ");
  EXPECT_EQ(names("cpu_only", false), "sCPU ");
  EXPECT_EQ(names("alloc_only", false), "sALLOC ");
  EXPECT_EQ(names("alloc_live_heap", false), "sALLOC ");
  EXPECT_EQ(names("cpu_live_heap", false), "sCPU sALLOC ");
  EXPECT_THAT(names("cpu-only", false), HasSubstr("did you mean cpu_only?"));
}

TEST(EventSpec, HelpNamesEveryEventAndFitsATerminal) {
  const std::string help = events_help();
  for (const KnownEvent& event : known_events())
    EXPECT_THAT(help, HasSubstr("  " + std::string(event.name) + " "));
  std::size_t start = 0;
  while (start < help.size()) {
    const std::size_t end = help.find('\n', start);
    EXPECT_LE(end - start, 90U) << help.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace ddprof
