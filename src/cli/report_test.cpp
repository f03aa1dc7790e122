#include "cli/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "cli/golden_fixture.hpp"
#include "cli/report_fixture.hpp"
#include "encode/display_text.hpp"
#include "encode/human_value.hpp"

namespace ddprof {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Fixture = ReportFixture;

std::size_t position(const std::string& text, std::string_view needle) { return text.find(needle); }

TEST(Report, BeginsWithWhatItIsAbout) {
  const std::string text =
      Fixture().add("main;work", 1500).add("main", 500, 2).render({.title = "./app --fast"});
  EXPECT_TRUE(
      text.starts_with("./app --fast\n"
                       "2.00 s cpu in 2.00 s (1.00 CPUs), 200 samples\n"
                       "2 threads of 1 process, from 2023-11-14 22:13:20 UTC\n"))
      << text;
}

TEST(Report, ListsFunctionsBySelfWithTheirTotals) {
  const std::string text =
      from_heading(Fixture().add("main;work", 1500).add("main", 500).render(), "Top functions");
  EXPECT_THAT(line_with(text, "  work"), ContainsRegex("75.0 % +1.50 s +75.0 % +1.50 s +work +app"));
  EXPECT_THAT(line_with(text, "  main "), ContainsRegex("25.0 % +500 ms +100.0 % +2.00 s +main +app"));
  EXPECT_LT(position(text, "  work"), position(text, "  main "));
}

TEST(Report, CountsRecursionOnceInTotals) {
  const std::string text =
      from_heading(Fixture().add("main;fib;fib;fib", 1000).add("main;other", 1000).render(), "Top functions");
  EXPECT_THAT(line_with(text, " fib "), ContainsRegex("50.0 % +1.00 s +50.0 % +1.00 s +fib"));
}

TEST(Report, KeepsTheSameOrderForEqualFunctions) {
  const std::string text = Fixture().add("b", 100).add("a", 100).render();
  EXPECT_LT(position(text, "  a "), position(text, "  b "));
}

TEST(Report, SaysHowMuchIsBelowTheTop) {
  const std::string text = Fixture().add("hot", 900).add("warm", 60).add("cold", 40).render({.top = 1});
  EXPECT_THAT(text, ContainsRegex("10.0 % +100 ms  … 2 more functions"));
}

TEST(Report, DrawsHotPathsWithChainsOnOneLine) {
  const std::string text =
      Fixture().add("main;run;left", 1200).add("main;run;right", 760).add("main;run;rare", 40).render();
  const std::string tree = text.substr(position(text, "Hottest paths"));
  EXPECT_THAT(tree, ContainsRegex("100.0 % +2.00 s  main → run\n"));
  EXPECT_THAT(tree, ContainsRegex("60.0 % +1.20 s    left\n"));
  EXPECT_THAT(tree, ContainsRegex("38.0 % +760 ms    right\n"));
  EXPECT_THAT(tree, Not(HasSubstr("rare")));
}

TEST(Report, ListsThreadsOnlyWhenThereIsMoreThanOne) {
  EXPECT_THAT(Fixture().add("main", 100).render(), Not(HasSubstr("Threads")));
  const std::string text = Fixture().add("main", 300, 7).add("main", 100, 8).render();
  EXPECT_THAT(text, ContainsRegex("75.0 % +300 ms  worker .7.\n"));
  EXPECT_THAT(text, ContainsRegex("25.0 % +100 ms  worker .8.\n"));
}

TEST(Report, NamesProcessesWhenThereIsMoreThanOne) {
  const std::string text =
      Fixture().add("main", 300, 7, "server", 70).add("main", 100, 8, "helper", 80).render();
  EXPECT_THAT(text, HasSubstr("2 threads of 2 processes"));
  EXPECT_THAT(text, HasSubstr("worker (8) of helper (80)"));
  EXPECT_THAT(text, HasSubstr("server → main"));
}

TEST(Report, SumsWhatWasMissedByReason) {
  const std::string text = Fixture()
                               .add("[truncated: no unwind info in libfoo.so];inner", 100)
                               .add("[truncated: no unwind info in libfoo.so];other", 100)
                               .add("[lost: ring buffer full]", 300)
                               .add("main", 1500)
                               .render();
  const std::string missed = text.substr(position(text, "What was missed"));
  EXPECT_THAT(missed, ContainsRegex("15.0 % +300 ms  .lost: ring buffer full.\n"));
  EXPECT_THAT(missed, ContainsRegex("10.0 % +200 ms  .truncated: no unwind info in libfoo.so.\n"));
  const std::string top = text.substr(0, position(text, "Hottest paths"));
  EXPECT_THAT(top, Not(HasSubstr("[lost")));
}

TEST(Report, SaysThatNothingWasMissed) {
  EXPECT_THAT(Fixture().add("main", 100).render(),
              HasSubstr("What was missed: nothing, every stack is complete"));
}

TEST(Report, StaysWithinItsWidthAndKeepsBothEndsOfLongNames) {
  const std::string name = "boost::asio::detail::" + std::string(200, 'x') + "::run_one()";
  for (std::size_t width : {60U, 80U, 140U}) {
    const std::string text =
        Fixture().add("main;" + name + ";" + name + "2", 100).add("main", 20).render({.width = width});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
    EXPECT_THAT(text, HasSubstr("boost"));
    EXPECT_THAT(text, HasSubstr("()2"));
  }
}

TEST(Report, OnANarrowScreenTheTreeIsStillATree) {
  Fixture fixture;
  std::string stack = "main";
  for (int depth = 0; depth < 10; ++depth) {
    stack += ";shop::Server::step_" + std::to_string(depth) + "(shop::Order const&)";
    fixture.add(stack, 100);
  }
  const std::string tree = from_heading(fixture.render({.width = 60}), "Hottest paths");
  for (int depth = 1; depth < 10; ++depth)
    EXPECT_THAT(tree, ContainsRegex(" % +(main → )?shop::Server::step_" + std::to_string(depth)));
  EXPECT_LT(line_with(tree, "step_3").find("shop"), line_with(tree, "step_7").find("shop"));
}

TEST(Report, HidesWhatSaysNothing) {
  Fixture fixture;
  for (int at = 0; at < 30; ++at) fixture.add("start;wrap;main;f" + std::to_string(at), 100 + at);
  const std::string text = fixture.render();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_THAT(text, Not(ContainsRegex(" 0.0 % +0 ns")));
  EXPECT_THAT(text, HasSubstr("start → wrap → main"));
  const std::string whole = from_heading(fixture.render({.top = 40}), "with what they call");
  EXPECT_THAT(whole, HasSubstr("3 functions with 98 % and more, none of it their own, not shown"));
  EXPECT_THAT(whole, HasSubstr("f29"));
}

TEST(Report, SaysWhichOfSeveralTypesIsShown) {
  Fixture fixture;
  ProfileBuilder& builder = fixture.builder();
  builder.profile().value_types.push_back(builder.value_type("page-faults", "count"));
  builder.add_sample({{}, {0, 0, 7}, {}});
  fixture.builder().profile().samples.front().values = {1, 10'000'000, 7};
  EXPECT_THAT(fixture.render(),
              HasSubstr("shown is cpu; also in this profile: page-faults (--sample-type page-faults)"));
  EXPECT_THAT(Fixture().add("main", 100).render(), Not(HasSubstr("--sample-type")));
}

TEST(Report, FindsWhatCallsAFunctionAndWhatItCalls) {
  Fixture fixture;
  fixture.add("main;serve;parse;malloc", 600).add("main;load;parse", 300).add("main;load", 100);
  const std::string callers = from_heading(fixture.render({.callers = "parse"}), "What calls parse");
  EXPECT_THAT(callers, ContainsRegex("self 300 ms .30.0 %., total 900 ms .90.0 %."));
  EXPECT_THAT(callers, ContainsRegex("60.0 % +600 ms    serve ← main"));
  EXPECT_THAT(callers, ContainsRegex("30.0 % +300 ms    load ← main"));
  const std::string deep = Fixture()
                               .add("a;b;c;d;e;f;g;h;i;j;k;l;m;n;o;p;q;r;caller_of_it;it", 100)
                               .render({.width = 60, .callers = "it"});
  EXPECT_THAT(from_heading(deep, "What calls it"), ContainsRegex("it ← caller_of_it ← .* … [0-9]+ more"));
  const std::string callees = from_heading(fixture.render({.callees = "parse"}), "What is called by parse");
  EXPECT_THAT(callees, ContainsRegex("60.0 % +600 ms    malloc"));
  EXPECT_EQ(fixture.failure({.callers = "nothing"}).message,
            "--callers nothing: no function with samples has this name");
}

TEST(Report, ListsFunctionsByTotalToo) {
  const std::string text = Fixture().add("main;work", 1500).add("main", 500).render({.top = 20});
  const std::string table = from_heading(text, "with what they call");
  EXPECT_LT(position(table, "  main "), position(table, "  work"));
  EXPECT_THAT(line_with(table, "  main "), ContainsRegex("25.0 % +500 ms +100.0 % +2.00 s +main +app"));
}

TEST(Report, InlinedCallsAreFramesOfTheirOwn) {
  const std::string text =
      from_heading(Fixture().add("main;outer@a.cc:1>inner@a.h:2", 900).add("main", 100).render({.top = 20}),
                   "Top functions");
  EXPECT_THAT(line_with(text, "  inner "), ContainsRegex("90.0 % +900 ms +90.0 % +900 ms +inner"));
  EXPECT_THAT(line_with(text, "  outer "), ContainsRegex("0.0 % +0 ns +90.0 % +900 ms +outer"));
  EXPECT_THAT(text, HasSubstr("outer → inner"));
}

TEST(Report, SumsProcesses) {
  const std::string text = Fixture()
                               .add("main", 300, 7, "server", 70)
                               .add("main", 300, 9, "server", 70)
                               .add("main", 200, 8, "helper", 80)
                               .render();
  const std::string processes = text.substr(position(text, "\nProcesses"));
  EXPECT_THAT(processes, ContainsRegex("75.0 % +600 ms  server .70."));
  EXPECT_THAT(processes, ContainsRegex("25.0 % +200 ms  helper .80."));
}

TEST(Report, LooksAtTheColumnThatIsAskedFor) {
  const std::string text = Fixture().add("main", 500).render({.sample_type = "samples"});
  EXPECT_THAT(text, HasSubstr("50 samples in 2.00 s"));
  EXPECT_EQ(Fixture().add("main", 1).failure({.sample_type = "heap"}).message,
            "--sample-type heap: not in this profile, which has samples, cpu");
}

TEST(Report, PercentagesOfADifferenceAreOfTheSumOfSizes) {
  const std::string text = Fixture().add("main;faster", -300).add("main;slower", 100).render();
  EXPECT_THAT(text, HasSubstr("values of both signs: percentages are of the sum of their sizes, 400 ms"));
  EXPECT_THAT(line_with(text, "  faster "), ContainsRegex("-75.0 % +-300 ms +-75.0 % +-300 ms +faster"));
  EXPECT_LT(position(text, "  faster "), position(text, "  slower "));
  EXPECT_THAT(text.substr(position(text, "Hottest")), ContainsRegex("-50.0 % +-200 ms  main\n"));
}

TEST(Report, WhatCancelsOutIsStillShown) {
  const std::string text = Fixture().add("main;faster", -300).add("main;slower", 300).render();
  EXPECT_THAT(text, Not(HasSubstr("The profile is empty")));
  EXPECT_THAT(line_with(text, "  slower "), HasSubstr("50.0 %"));
}

TEST(Report, ColoursOnlyWhenAsked) {
  EXPECT_THAT(Fixture().add("main", 100).render(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Fixture().add("main", 100).render({.color = true}), HasSubstr("\x1b[1mTop functions"));
}

TEST(Report, NamesCannotCommandTheTerminal) {
  const std::string text = Fixture().add("main;evil\x1b[2J\x07name", 100).render({.title = "a\x1b]0;title"});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
}

TEST(Report, SumsStopAtTheLimitsOfNumbers) {
  Fixture fixture;
  fixture.add("main", 1).add("main", 1);
  for (ProfileSample& sample : fixture.builder().profile().samples)
    sample.values = {1, std::numeric_limits<std::int64_t>::max()};
  EXPECT_THAT(fixture.render(), HasSubstr("100.0 %"));
  for (ProfileSample& sample : fixture.builder().profile().samples)
    sample.values = {1, std::numeric_limits<std::int64_t>::min()};
  EXPECT_FALSE(fixture.render().empty());
}

TEST(Report, SurvivesProfilesWithNothingInThem) {
  EXPECT_EQ(render_report(Profile{}).error().message, "the profile has no values");
  EXPECT_THAT(Fixture().render(), HasSubstr("The profile is empty"));
}

TEST(Report, SurvivesSamplesWithoutStacks) {
  Fixture fixture;
  fixture.builder().add_sample({{}, {1, 10'000'000}, {}});
  EXPECT_THAT(fixture.render(), HasSubstr("10.0 ms cpu"));
}

TEST(Report, TheWholeTextIsAsReviewed) {
  Fixture fixture;
  fixture.add("main;run;parse@src/parse.cc:10;malloc", 400, 11, "server", 10)
      .add("main;run;parse@src/parse.cc:12", 300, 11, "server", 10)
      .add("main;run;send@src/send.cc:7>append@vector.h:90", 200, 12, "server", 10)
      .add("[truncated: no unwind info in libfoo.so];callback", 60, 21, "helper", 20)
      .add("[lost: ring buffer full]", 40, 21, "helper", 20);
  fixture.builder().profile().comments = {fixture.builder().intern("ddprof 0.1.0")};
  expect_file("tests/golden/cli/report.txt", fixture.render({.title = "server.pb.gz"}));
}

TEST(Report, HintsOfTheProfilerStandBelowWhatWasMissed) {
  Fixture fixture;
  fixture.add("main", 100);
  ProfileBuilder& builder = fixture.builder();
  builder.profile().comments = {builder.intern("ddprof 0.1.0"), builder.intern("hint: keep frame pointers")};
  const std::string text = fixture.render();
  EXPECT_LT(position(text, "What was missed"), position(text, "hint: keep frame pointers"));
  EXPECT_LT(position(text, "hint: keep frame pointers"), position(text, "Notes"));
  EXPECT_THAT(text.substr(position(text, "Notes")), Not(HasSubstr("hint")));
}

TEST(Report, SurvivesVeryDeepStacks) {
  Fixture fixture;
  std::string stack = "main";
  for (int depth = 0; depth < 300; ++depth) {
    stack += ";deep" + std::to_string(depth);
    fixture.add(stack, 10);
  }
  EXPECT_THAT(fixture.add(stack + ";leaf", 100000).render(), HasSubstr("→ …"));
}

TEST(ReportFormat, WritesValuesForPeople) {
  EXPECT_EQ(human_value(1'234'000'000, "nanoseconds"), "1.23 s");
  EXPECT_EQ(human_value(12'340'000, "nanoseconds"), "12.3 ms");
  EXPECT_EQ(human_value(999'999, "nanoseconds"), "1.00 ms");
  EXPECT_EQ(human_value(12, "nanoseconds"), "12 ns");
  EXPECT_EQ(human_value(0, "nanoseconds"), "0 ns");
  EXPECT_EQ(human_value(3 << 20, "bytes"), "3.00 MiB");
  EXPECT_EQ(human_value(1'234'567, "count"), "1,234,567");
  EXPECT_EQ(human_count(-1234), "-1,234");
  EXPECT_EQ(human_count(-123), "-123");
  EXPECT_EQ(human_percent(1, 3), "33.3 %");
  EXPECT_EQ(human_percent(1, 0), "0.0 %");
}

TEST(ReportFormat, KnowsTheUnitsOfTimeOfOtherWriters) {
  EXPECT_EQ(human_value(1500, "milliseconds"), "1.50 s");
  EXPECT_EQ(human_value(1500, "microseconds"), "1.50 ms");
  EXPECT_EQ(human_value(2, "seconds"), "2.00 s");
}

}  // namespace
}  // namespace ddprof
