#include "report/hot_paths.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "report/headline_fixture.hpp"

namespace ddprof {
namespace {

// "value name→name*" of each line, indented; a star is a recursion.
std::string drawn(const std::vector<PathLine>& lines) {
  std::string text;
  for (const PathLine& line : lines)
    text += fmt::format("{}{} {}{}\n", std::string(line.depth, ' '), line.value / 10'000'000,
                        fmt::join(line.names, "→"), line.is_recursive ? "*" : "");
  return text;
}

std::uint32_t frame_of(const ReportView& view, std::string_view name) {
  for (std::uint32_t frame = 0; frame < view.frames.size(); ++frame) {
    if (view.frames[frame].name == name) return frame;
  }
  return 0;
}

TEST(HotPaths, AnOnlyChildWithNearlyAllSharesTheLine) {
  HeadlineFixture fixture;
  fixture.add("start;main;run;left", 600).add("start;main;run;right", 390).add("start;other", 10);
  const auto view = make_report_view(fixture.builder().profile());
  const auto paths = hot_paths(*view, 10 * 50'000'000, false);
  EXPECT_EQ(drawn(paths), "1000 start\n 990 main→run\n  600 left\n  390 right\n");
  EXPECT_EQ(drawn(folded(paths, 40)), "1000 start→main→run\n 600 left\n 390 right\n");
}

TEST(HotPaths, AFunctionThatCallsItselfIsOneLine) {
  HeadlineFixture fixture;
  fixture.add("main;fib", 100)
      .add("main;fib;fib", 200)
      .add("main;fib;fib;fib;leaf", 300)
      .add("main;fib;fib;fib", 400);
  const auto view = make_report_view(fixture.builder().profile());
  EXPECT_EQ(drawn(folded(hot_paths(*view, 1, false), 40)), "1000 main→fib*\n 300 leaf\n");
}

TEST(HotPaths, TheHottestLinesAreStillATree) {
  HeadlineFixture fixture;
  fixture.add("main;a;b", 500).add("main;a;c", 100).add("main;d;e", 250).add("main;d;f", 150);
  const auto view = make_report_view(fixture.builder().profile());
  EXPECT_EQ(drawn(folded(hot_paths(*view, 1, false), 4)), "1000 main\n 600 a\n  500 b\n 400 d\n");
}

TEST(HotPaths, CallersAndCalleesOfOneFunction) {
  HeadlineFixture fixture;
  fixture.add("main;serve;parse;malloc", 600).add("main;load;parse", 300).add("main;load", 100);
  const auto view = make_report_view(fixture.builder().profile());
  const std::uint32_t parse = frame_of(*view, "parse");
  EXPECT_EQ(drawn(paths_from(*view, parse, PathDirection::callers, 1)),
            "900 parse\n 600 serve→main\n 300 load→main\n");
  EXPECT_EQ(drawn(paths_from(*view, parse, PathDirection::callees, 1)), "900 parse\n 600 malloc\n");
}

TEST(HotPaths, CallersOfARecursionAreThoseOutside) {
  HeadlineFixture fixture;
  fixture.add("main;fib;fib;fib", 100);
  const auto view = make_report_view(fixture.builder().profile());
  EXPECT_EQ(drawn(paths_from(*view, frame_of(*view, "fib"), PathDirection::callers, 1)), "100 fib→main\n");
}

}  // namespace
}  // namespace ddprof
