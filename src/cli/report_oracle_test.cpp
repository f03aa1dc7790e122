#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "cli/report_fixture.hpp"
#include "encode/pprof.hpp"
#include "report/tables.hpp"
#include "report/view.hpp"

// Our sums beside those of the reference implementation.

namespace ddprof {
namespace {

struct CommandCloser {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

using SumsByName = std::map<std::string, std::pair<std::int64_t, std::int64_t>>;

// Stacks with recursion, inlined calls and shared beginnings.
ReportFixture random_profile() {
  ReportFixture fixture;
  std::mt19937 random(7);
  for (int number = 0; number < 300; ++number) {
    std::string stack = "main@m.cc:1";
    for (unsigned depth = random() % 12; depth > 0; --depth) {
      const auto function = random() % 20;
      stack += ";f" + std::to_string(function) + "@f.cc:" + std::to_string(function * 10 + random() % 4);
      if (random() % 3 == 0)
        stack += ">inline" + std::to_string(random() % 5) + "@i.h:" + std::to_string(random() % 3 + 1);
    }
    fixture.add(stack, static_cast<std::int64_t>(random() % 100 + 1) * 10);
  }
  return fixture;
}

class GoTop : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v go >/dev/null 2>&1") != 0) GTEST_SKIP() << "go is not installed";
    std::string name = testing::TempDir() + "ddprof_top_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // {name: (flat, cum)} of `go tool pprof -top`.
  SumsByName go_top(const Profile& profile, const std::string& arguments) {
    const std::string path = folder_ / "profile.pb";
    std::ofstream(path, std::ios::binary) << encode_pprof(profile);
    const std::string command =
        "HOME=" + folder_.string() + " GOCACHE=" + folder_.string() +
        " GOFLAGS= go tool pprof -top -symbolize=none -unit=nanoseconds -nodecount=100000 "
        "-nodefraction=0 " +
        arguments + " " + path + " 2>/dev/null";
    const std::unique_ptr<std::FILE, CommandCloser> pipe(popen(command.c_str(), "r"));
    SumsByName sums;
    std::array<char, 1000> line{};
    while (pipe && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
      std::int64_t flat = 0, cum = 0;
      std::array<char, 500> name{};
      if (std::sscanf(line.data(), " %" SCNd64 "%*[a-z] %*s %*s %" SCNd64 "%*[a-z] %*s %499[^\n]", &flat,
                      &cum, name.data()) == 3 ||
          std::sscanf(line.data(), " %" SCNd64 " %*s %*s %" SCNd64 "%*[a-z] %*s %499[^\n]", &flat, &cum,
                      name.data()) == 3)
        sums[without_note(name.data())] = {flat, cum};
    }
    return sums;
  }

  static std::string without_note(std::string name) {
    const std::size_t note = name.find(" (inline)");
    return note == std::string::npos ? name : name.substr(0, note);
  }

  static SumsByName our_top(const Profile& profile, const ReportOptions& options) {
    SumsByName sums;
    const auto view = make_report_view(profile, options.sample_type, options.filter);
    for (const SumRow& row : function_tables(*view).by_self)
      sums[view->frames[row.id].name] = {row.sum.self, row.sum.total};
    return sums;
  }

  std::filesystem::path folder_;
};

TEST_F(GoTop, AgreesOnEveryFunction) {
  ReportFixture fixture = random_profile();
  const SumsByName expected = go_top(fixture.builder().profile(), "");
  ASSERT_GT(expected.size(), 20U);
  EXPECT_EQ(our_top(fixture.builder().profile(), {}), expected);
}

TEST_F(GoTop, AgreesOnWhatFocusAndIgnoreLeave) {
  ReportFixture fixture = random_profile();
  const SumsByName expected = go_top(fixture.builder().profile(), "-focus='f1[0-3]|inline2' -ignore='f4$'");
  ASSERT_GT(expected.size(), 5U);
  EXPECT_EQ(
      our_top(fixture.builder().profile(), {.filter = {.focus = {"f1[0-3]|inline2"}, .ignore = {"f4$"}}}),
      expected);
}

}  // namespace
}  // namespace ddprof
