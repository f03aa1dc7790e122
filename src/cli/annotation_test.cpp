#include "cli/annotation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/report_fixture.hpp"

namespace ddprof {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A folder with /src/work.cc in it, as --source-dir would name it.
class SourceFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "ddprof_source_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directories(folder_ / "src");
    std::ofstream file(folder_ / "src/work.cc");
    for (int line = 1; line <= 200; ++line) file << "\tstatement " << line << ";\n";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string render(ReportFixture& fixture, const std::string& name) {
    return fixture.render({.annotate = name, .source_dir = folder_.string()});
  }

  std::filesystem::path folder_;
};

TEST_F(SourceFolder, ValuesStandBesideTheLines) {
  ReportFixture fixture;
  fixture.add("main;work@/build/src/work.cc:10", 600)
      .add("main;work@/build/src/work.cc:12;callee", 300)
      .add("main;other", 100);
  const std::string text = render(fixture, "work");
  EXPECT_THAT(text, HasSubstr("self 600 ms (60.0 %), total 900 ms (90.0 %)"));
  EXPECT_THAT(text, HasSubstr("hottest lines: 10 60.0 %"));
  EXPECT_THAT(line_with(text, "statement 10;"),
              ContainsRegex("^ *60.0 % +600 ms +60.0 % +600 ms +10 +statement 10;$"));
  EXPECT_THAT(line_with(text, "statement 12;"), ContainsRegex("^ +30.0 % +300 ms +12 +statement 12;$"));
  EXPECT_THAT(line_with(text, "statement 11;"), ContainsRegex("^ +11 +statement 11;$"));
  EXPECT_THAT(text, Not(HasSubstr("statement 20;")));
}

TEST_F(SourceFolder, RecursionCountsOnceInALinesTotal) {
  ReportFixture fixture;
  fixture.add("f@src/work.cc:5;f@src/work.cc:5;f@src/work.cc:5", 100);
  EXPECT_THAT(line_with(render(fixture, "f"), "statement 5;"),
              ContainsRegex("100.0 % +100 ms +100.0 % +100 ms +5 "));
}

TEST_F(SourceFolder, AnInlinedFunctionCountsWhereItRan) {
  ReportFixture fixture;
  fixture.add("outer@src/other.cc:7>inner@src/work.cc:3", 100).add("inner@src/work.cc:3", 100);
  const std::string text = render(fixture, "inner");
  EXPECT_THAT(line_with(text, "statement 3;"), ContainsRegex("100.0 % +200 ms +100.0 % +200 ms +3 "));
  const std::string outer = render(fixture, "outer");
  EXPECT_THAT(outer, HasSubstr("self 0 ns (0.0 %), total 100 ms (50.0 %)"));
  EXPECT_THAT(outer, ContainsRegex("\n +50.0 % +100 ms +7\n"));
}

TEST_F(SourceFolder, OfALongFunctionOnlyTheSurroundingsOfHotLinesAreShown) {
  ReportFixture fixture;
  fixture.add("f@src/work.cc:10", 100).add("f@src/work.cc:190", 100);
  const std::string text = render(fixture, "f");
  EXPECT_THAT(text, HasSubstr("statement 13;"));
  EXPECT_THAT(text, Not(HasSubstr("statement 14;")));
  EXPECT_THAT(text, HasSubstr("…\n"));
  EXPECT_THAT(text, HasSubstr("statement 187;"));
}

TEST_F(SourceFolder, LinesBehindTheEndOfTheSourceAreStillListed) {
  ReportFixture fixture;
  fixture.add("f@src/work.cc:199", 100).add("f@src/work.cc:9000000000000000000", 100);
  const std::string text = render(fixture, "f");
  EXPECT_THAT(text, HasSubstr("not the same version?"));
  EXPECT_THAT(text, HasSubstr("9000000000000000000"));
}

TEST(Annotation, SaysWhyThereIsNoSource) {
  ReportFixture fixture;
  fixture.add("f@/nowhere/f.cc:3", 100);
  const std::string text = fixture.render({.annotate = "f"});
  EXPECT_THAT(text, HasSubstr("the source is not here: /nowhere/f.cc; --source-dir DIR says where it is"));
  EXPECT_THAT(text, ContainsRegex("100.0 % +100 ms +100.0 % +100 ms +3\n"));
  fixture.add("g", 100);
  EXPECT_THAT(fixture.render({.annotate = "g"}), HasSubstr("the profile has no lines of this function"));
}

TEST(Annotation, ReadsNoDevices) {
  ReportFixture fixture;
  fixture.add("f@/dev/zero:3", 100);
  EXPECT_THAT(fixture.render({.annotate = "f"}), HasSubstr("the source is not here"));
}

TEST(Annotation, SaysWhyThereIsNoAssembly) {
  ReportFixture fixture;
  fixture.add("main;f", 100);
  fixture.builder().profile().mappings[0].path = fixture.builder().intern("/nowhere/app");
  EXPECT_THAT(fixture.render({.annotate = "f"}), HasSubstr("open /nowhere/app: No such file or directory"));
  fixture.builder().profile().mappings[0].path = fixture.builder().intern("/dev/null");
  EXPECT_THAT(fixture.render({.annotate = "f"}), HasSubstr("/dev/null is not a plain file"));
  fixture.builder().profile().mappings[0].path = fixture.builder().intern("/proc/self/exe");
  fixture.builder().profile().mappings[0].build_id = fixture.builder().intern("00ff");
  EXPECT_THAT(fixture.render({.width = 200, .annotate = "f"}),
              ContainsRegex("is not the file that was profiled: build id .*, not 00ff"));
}

TEST(Annotation, AFunctionIsMeantByItsNameOrAPartThatOnlyItHas) {
  ReportFixture fixture;
  fixture.add("net::work(int)", 100).add("network", 100).add("work_more()", 100).add("unique_name()", 100);
  EXPECT_THAT(fixture.render({.annotate = "work"}), HasSubstr("\nnet::work(int) in app\n"));
  EXPECT_THAT(fixture.render({.annotate = "network"}), HasSubstr("\nnetwork in app\n"));
  EXPECT_THAT(fixture.render({.annotate = "que_na"}), HasSubstr("\nunique_name() in app\n"));
  EXPECT_EQ(fixture.failure({.annotate = "wor"}).message,
            "--annotate wor: 3 functions match: net::work(int), network, work_more()");
  EXPECT_EQ(fixture.failure({.annotate = "absent"}).message,
            "--annotate absent: no function with samples has this name");
}

}  // namespace
}  // namespace ddprof
