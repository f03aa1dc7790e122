#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/report_fixture.hpp"

// The tables of modules and of lines.

namespace ddprof {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// 700 ms in app, of which libc's 200 ms were called from it; 300 ms without a module.
ReportFixture with_modules() {
  ReportFixture fixture;
  ProfileBuilder& builder = fixture.builder();
  const auto libc = builder.add_mapping({.start = {0x10000},
                                         .limit = {0x20000},
                                         .path = builder.intern("/lib/libc.so.6"),
                                         .build_id = builder.intern("0123456789abcdef0123"),
                                         .has_functions = true});
  const ProfileLine in_libc{builder.add_function("write"), 0}, in_app{builder.add_function("main"), 0};
  const auto callee = builder.add_location(libc, {0x11000}, std::span(&in_libc, 1));
  const auto caller = builder.add_location(0, {0x2000}, std::span(&in_app, 1));
  builder.add_sample({{callee, caller}, {20, 200 * ReportFixture::kMillisecond}, {}});
  fixture.add("main", 500).add("[lost: ring buffer full]", 300);
  return fixture;
}

TEST(ReportModules, SumsSelfAndTotalPerFile) {
  const std::string text = with_modules().render({.width = 140, .modules = true});
  EXPECT_THAT(line_with(text, "/usr/bin/app"), ContainsRegex("50.0 % +500 ms +70.0 % +700 ms +/usr/bin/app"));
  EXPECT_THAT(line_with(text, "libc.so.6"),
              ContainsRegex("20.0 % +200 ms +20.0 % +200 ms +/lib/libc.so.6 +functions +0123456789ab"));
  EXPECT_THAT(line_with(text, "[no module]"), ContainsRegex("30.0 % +300 ms +30.0 % +300 ms"));
  EXPECT_THAT(text, Not(HasSubstr("Top functions")));
}

TEST(ReportModules, TellsWhatNamedAFile) {
  ReportFixture fixture = with_modules();
  fixture.builder().profile().comments = {
      fixture.builder().intern("names: /usr/bin/app: debug file, lines, inlines"),
      fixture.builder().intern("another note")};
  EXPECT_THAT(line_with(fixture.render({.width = 140, .modules = true}), "/usr/bin/app"),
              HasSubstr("debug file, lines, inlines"));
  const std::string usual = fixture.render();
  EXPECT_THAT(usual, HasSubstr("another note"));
  EXPECT_THAT(usual, Not(HasSubstr("names: ")));
}

TEST(ReportModules, MappingsOfTheSameFileAreOneAndOfAnotherBuildAreNot) {
  ReportFixture fixture;
  ProfileBuilder& builder = fixture.builder();
  const auto add = [&](std::uint64_t start, std::string_view build_id) {
    const auto mapping = builder.add_mapping({.start = {start},
                                              .limit = {start + 0x1000},
                                              .path = builder.intern("/lib/libx.so"),
                                              .build_id = builder.intern(build_id)});
    builder.add_sample(
        {{builder.add_location(mapping, {start}, {})}, {1, 100 * ReportFixture::kMillisecond}, {}});
  };
  add(0x10000, "aa");
  add(0x20000, "aa");
  add(0x30000, "bb");
  const std::string text = fixture.render({.modules = true});
  EXPECT_THAT(text, ContainsRegex("66.7 % +200 ms +66.7 % +200 ms +/lib/libx.so"));
  EXPECT_THAT(text, ContainsRegex("33.3 % +100 ms +33.3 % +100 ms +/lib/libx.so"));
}

TEST(ReportLines, SumsSelfAndTotalPerLine) {
  ReportFixture fixture;
  fixture.add("main@app.cc:10;work@app.cc:20", 600)
      .add("main@app.cc:10;work@app.cc:21", 200)
      .add("main@app.cc:11", 100)
      .add("main@app.cc:11;blob", 100);
  const std::string text = fixture.render({.lines = true});
  EXPECT_THAT(line_with(text, "app.cc:20"), ContainsRegex("60.0 % +600 ms +60.0 % +600 ms +app.cc:20 +work"));
  EXPECT_THAT(line_with(text, "app.cc:10"), ContainsRegex("0.0 % +0 ns +80.0 % +800 ms +app.cc:10 +main"));
  EXPECT_THAT(line_with(text, "app.cc:11"), ContainsRegex("10.0 % +100 ms +20.0 % +200 ms +app.cc:11 +main"));
  EXPECT_THAT(text, ContainsRegex("10.0 % +100 ms  in code of unknown lines"));
}

TEST(ReportLines, InlinedLinesCountForTheirOwnFunction) {
  ReportFixture fixture;
  fixture.add("outer@a.cc:5>inner@a.h:2", 100);
  const std::string text = fixture.render({.lines = true});
  EXPECT_THAT(line_with(text, "a.h:2"), ContainsRegex("100.0 % +100 ms +100.0 % +100 ms +a.h:2 +inner"));
  EXPECT_THAT(line_with(text, "a.cc:5"), ContainsRegex("0.0 % +0 ns +100.0 % +100 ms +a.cc:5 +outer"));
}

TEST(ReportLines, ListsTheTopAndSumsTheRest) {
  ReportFixture fixture;
  fixture.add("f@a.cc:1", 600).add("f@a.cc:2", 300).add("f@a.cc:3", 100);
  EXPECT_THAT(fixture.render({.top = 1, .lines = true}), ContainsRegex("40.0 % +400 ms  … 2 more lines"));
}

TEST(ReportLines, SaysThatThereAreNone) {
  ReportFixture fixture;
  EXPECT_THAT(fixture.add("main", 100).render({.lines = true}),
              HasSubstr("The profile has no source lines."));
}

}  // namespace
}  // namespace ddprof
