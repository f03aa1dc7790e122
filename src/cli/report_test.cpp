#include "cli/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "cli/report_format.hpp"
#include "profile/labels.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// Profiles from stacks written root first: "main;work".
class Fixture {
 public:
  Fixture() {
    builder_.profile().value_types = {builder_.value_type("samples", "count"),
                                      builder_.value_type("cpu", "nanoseconds")};
    builder_.profile().default_value_type = builder_.intern("cpu");
    builder_.profile().duration_ns = 2'000'000'000;
    builder_.profile().time_ns = 1'700'000'000'000'000'000;
    app_ =
        builder_.add_mapping({.start = {0x1000}, .limit = {0x9000}, .path = builder_.intern("/usr/bin/app")});
  }

  Fixture& add(const std::string& stack, std::int64_t milliseconds, std::int64_t thread = 1,
               std::string_view process = "app", std::int64_t process_id = 1) {
    std::vector<std::uint32_t> locations;
    std::istringstream names(stack);
    for (std::string name; std::getline(names, name, ';');) {
      const ProfileLine line{builder_.add_function(name), 0};
      locations.insert(locations.begin(), builder_.add_location(name[0] == '[' ? kNoMapping : app_, {0x2000},
                                                                std::span(&line, 1)));
    }
    builder_.add_sample(
        {locations,
         {milliseconds / 10, milliseconds * 1'000'000},
         {builder_.number_label(kThreadIdLabel, thread), builder_.text_label(kThreadNameLabel, "worker"),
          builder_.number_label(kProcessIdLabel, process_id),
          builder_.text_label(kProcessNameLabel, process)}});
    return *this;
  }

  std::string render(const ReportOptions& options = {}) { return render_report(builder_.profile(), options); }
  ProfileBuilder& builder() { return builder_; }

 private:
  ProfileBuilder builder_;
  std::uint32_t app_ = 0;
};

std::string line_with(const std::string& text, std::string_view needle) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(needle) != std::string::npos) return line;
  }
  return {};
}

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
  const std::string text = Fixture().add("main;work", 1500).add("main", 500).render();
  EXPECT_THAT(line_with(text, "  work"), ContainsRegex("75.0 % +1.50 s +75.0 % +1.50 s +work +app"));
  EXPECT_THAT(line_with(text, "  main "), ContainsRegex("25.0 % +500 ms +100.0 % +2.00 s +main +app"));
  EXPECT_LT(position(text, "  work"), position(text, "  main "));
}

TEST(Report, CountsRecursionOnceInTotals) {
  const std::string text = Fixture().add("main;fib;fib;fib", 1000).add("main;other", 1000).render();
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
  EXPECT_THAT(Fixture().add("main", 100).render(), HasSubstr("nothing: every stack is complete"));
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

TEST(Report, SurvivesProfilesWithNothingInThem) {
  EXPECT_FALSE(render_report(Profile{}).empty());
  EXPECT_THAT(Fixture().render(), HasSubstr("The profile is empty"));
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

TEST(ReportFormat, CutsTheMiddleAndCountsCharacters) {
  EXPECT_EQ(fit("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(fit("abcdefgh", 5), "ab…gh");
  EXPECT_EQ(fit("éééééé", 3), "é…é");
  EXPECT_EQ(display_width(fit("éééééé", 4)), 4U);
  EXPECT_EQ(fit("abc", 0), "");
  EXPECT_EQ(right_aligned("é", 3), "  é");
}

}  // namespace
}  // namespace ddprof
