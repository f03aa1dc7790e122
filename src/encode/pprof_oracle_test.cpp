#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "encode/output_format.hpp"
#include "encode/profile_fixture.hpp"

// What we write, read by the reference implementation.

namespace ddprof {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct ClosePipe {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, ClosePipe> pipe(popen(command.c_str(), "r"));
  std::string text;
  for (int letter = 0; pipe && (letter = std::fgetc(pipe.get())) != EOF;) text += static_cast<char>(letter);
  return text;
}

class GoPprof : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v go >/dev/null 2>&1") != 0) GTEST_SKIP() << "go is not installed";
    std::string name = testing::TempDir() + "ddprof_go_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string run(OutputFormat format, const std::string& arguments) {
    const std::string path = folder_ / "profile";
    std::ofstream(path, std::ios::binary) << encode(testing_data::sample_profile(), format).value();
    return output_of("HOME=" + folder_.string() + " GOCACHE=" + folder_.string() +
                     " GOFLAGS= go tool pprof " + arguments + " " + path + " 2>&1");
  }

  std::filesystem::path folder_;
};

TEST_F(GoPprof, ReadsEveryPartOfWhatWeWrite) {
  for (OutputFormat format : {OutputFormat::pprof, OutputFormat::pprof_gzip}) {
    const std::string raw = run(format, "-symbolize=none -raw");
    EXPECT_THAT(raw, HasSubstr("PeriodType: cpu nanoseconds"));
    EXPECT_THAT(raw, HasSubstr("Period: 10000000"));
    EXPECT_THAT(raw, HasSubstr("Duration: 4"));
    EXPECT_THAT(raw, HasSubstr("samples/count cpu/nanoseconds[dflt]"));
    EXPECT_THAT(raw, ContainsRegex("200 +2000000000: 1 2"));
    EXPECT_THAT(raw, ContainsRegex("100 +1000000000: 3 2"));
    EXPECT_THAT(raw, HasSubstr("process name:[app]"));
    EXPECT_THAT(raw, ContainsRegex("2: 0x400456 M=1 main app.cc:34"));
    EXPECT_THAT(raw, ContainsRegex("1: 0x400123 M=1 add.*app.cc:2"));
    EXPECT_THAT(raw, ContainsRegex("3: 0x7f1234 M=2"));
    EXPECT_THAT(raw, HasSubstr("1: 0x400000/0x402000/0x1000 /usr/bin/app 0123abcd [FN][FL][LN][IN]"));
    EXPECT_THAT(raw, HasSubstr("a comment"));
  }
}

TEST_F(GoPprof, AddsUpSelfAndTotalTimeAsWeMeant) {
  const std::string top = run(OutputFormat::pprof_gzip, "-symbolize=none -nodefraction=0 -top");
  EXPECT_THAT(top, HasSubstr("100% of 3s total"));
  EXPECT_THAT(top, ContainsRegex("2s 66.67% 66.67% +2s 66.67%  add"));
  EXPECT_THAT(top, ContainsRegex("0 +0% +100% +3s +100%  main"));
}

}  // namespace
}  // namespace ddprof
