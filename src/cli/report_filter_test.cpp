#include "report/filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report_fixture.hpp"

namespace ddprof {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

ReportFixture two_servers() {
  ReportFixture fixture;
  fixture.add("main;parse@src/parse.cc:3;malloc", 400, 11, "server", 10)
      .add("main;send", 300, 12, "server", 10)
      .add("main;parse@src/parse.cc:4", 200, 21, "helper", 20)
      .add("main;sleep", 100, 21, "helper", 20);
  return fixture;
}

TEST(ReportFilter, AModuleIsTheCodeThatWasRunning) {
  ReportFixture fixture = two_servers();
  ProfileBuilder& builder = fixture.builder();
  const auto libc =
      builder.add_mapping({.start = {0x10000}, .limit = {0x20000}, .path = builder.intern("/lib/libc.so.6")});
  const ProfileLine write{builder.add_function("write"), 0}, main{builder.add_function("main"), 0};
  const auto callee = builder.add_location(libc, {0x11000}, std::span(&write, 1));
  const auto caller = builder.add_location(0, {0x2000}, std::span(&main, 1));
  builder.add_sample({{callee, caller}, {20, 200 * ReportFixture::kMillisecond}, {}});
  EXPECT_THAT(fixture.render({.filter = {.module = "libc.so.6"}}),
              HasSubstr("only code of libc.so.6: 200 ms of 1.20 s (16.7 %)"));
  EXPECT_THAT(fixture.render({.filter = {.module = "/usr/bin/app"}}), HasSubstr("1.00 s of 1.20 s"));
  EXPECT_THAT(fixture.failure({.filter = {.module = "libm"}}).message,
              HasSubstr("--only-module libm: not in"));
}

TEST(ReportFilter, FocusKeepsStacksWithAMatchAnywhere) {
  const std::string text = two_servers().render({.filter = {.focus = {"^pars"}}});
  EXPECT_THAT(text, HasSubstr("only stacks with ^pars: 600 ms of 1.00 s (60.0 %)"));
  EXPECT_THAT(line_with(text, "  malloc "), ContainsRegex("66.7 % +400 ms +66.7 % +400 ms"));
  EXPECT_THAT(text, Not(HasSubstr("send")));
}

TEST(ReportFilter, FocusLooksAtFilesAndModulesToo) {
  EXPECT_THAT(two_servers().render({.filter = {.focus = {"parse\\.cc"}}}), HasSubstr("600 ms of 1.00 s"));
  EXPECT_THAT(two_servers().render({.filter = {.focus = {"bin/app$"}}}),
              HasSubstr("1.00 s of 1.00 s (100.0 %)"));
}

TEST(ReportFilter, SeveralFocusesMustAllMatchAndOneIgnoreIsEnough) {
  const std::string both = two_servers().render({.filter = {.focus = {"parse", "malloc"}}});
  EXPECT_THAT(both, HasSubstr("400 ms of 1.00 s"));
  const std::string without = two_servers().render({.filter = {.ignore = {"malloc", "sleep|send"}}});
  EXPECT_THAT(without,
              HasSubstr("only stacks without malloc, stacks without sleep|send: 200 ms of 1.00 s (20.0 %)"));
}

TEST(ReportFilter, ThreadsAndProcessesAreMeantByNameOrId) {
  EXPECT_THAT(two_servers().render({.filter = {.thread = "21"}}), HasSubstr("300 ms of 1.00 s (30.0 %)"));
  EXPECT_THAT(two_servers().render({.filter = {.thread = "worker"}}), HasSubstr("1.00 s of 1.00 s"));
  EXPECT_THAT(two_servers().render({.filter = {.process = "server"}}),
              HasSubstr("700 ms of 1.00 s (70.0 %)"));
  EXPECT_THAT(two_servers().render({.filter = {.process = "20"}}), HasSubstr("300 ms of 1.00 s"));
  EXPECT_THAT(two_servers().render({.filter = {.process = "serv"}}), HasSubstr("700 ms of 1.00 s"));
  EXPECT_THAT(two_servers().render({.filter = {.focus = {"parse"}, .process = "server"}}),
              HasSubstr("only process server, stacks with parse: 400 ms of 1.00 s (40.0 %)"));
}

TEST(ReportFilter, SaysWhoIsThereWhenNobodyIsMeant) {
  EXPECT_EQ(two_servers().failure({.filter = {.process = "client"}}).message,
            "--process client: not in this profile, which has helper (20), server (10)");
  EXPECT_EQ(two_servers().failure({.filter = {.thread = "99"}}).message,
            "--thread 99: not in this profile, which has worker (11), worker (12), worker (21)");
}

TEST(ReportFilter, LabelsAreMeantByKeyAndValue) {
  EXPECT_THAT(two_servers().render({.filter = {.labels = {"process name=server"}}}),
              HasSubstr("only label process name=server: 700 ms of 1.00 s (70.0 %)"));
  EXPECT_THAT(two_servers().render({.filter = {.labels = {"pid=20", "thread id=21"}}}),
              HasSubstr("300 ms of 1.00 s"));
  EXPECT_EQ(two_servers().failure({.filter = {.labels = {"process name=client"}}}).message,
            "--label process name=client: not in this profile, which has helper, server");
  EXPECT_EQ(two_servers().failure({.filter = {.labels = {"service"}}}).message,
            "--label service: must be KEY=VALUE, such as service=shop");
  EXPECT_EQ(two_servers().failure({.filter = {.labels = {"service=shop"}}}).message,
            "--label service=shop: not in this profile, which has (no name)");
}

TEST(ReportFilter, ABadExpressionIsOneClearLine) {
  const Error error = two_servers().failure({.filter = {.focus = {"(main"}}});
  EXPECT_THAT(error.message, testing::StartsWith("--focus: regular expression '(main': "));
  EXPECT_THAT(error.message, Not(HasSubstr("\n")));
  EXPECT_THAT(two_servers().failure({.filter = {.ignore = {"[a"}}}).message,
              testing::StartsWith("--ignore: "));
}

TEST(ReportFilter, SaysThatNothingIsLeft) {
  const std::string text = two_servers().render({.filter = {.focus = {"nowhere"}}});
  EXPECT_THAT(text, HasSubstr("0 ns of 1.00 s (0.0 %)"));
  EXPECT_THAT(text, HasSubstr("Nothing is left: no sample passes the filter."));
}

TEST(ReportFilter, LongNamesAreMatchedWithoutHarm) {
  ReportFixture fixture;
  fixture.add("main;" + std::string(300'000, 'x') + "end", 100);
  EXPECT_THAT(fixture.render({.filter = {.focus = {"(x|y)*end$"}}}), HasSubstr("100 ms of 100 ms"));
}

}  // namespace
}  // namespace ddprof
