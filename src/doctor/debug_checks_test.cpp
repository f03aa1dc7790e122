#include "doctor/debug_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/machine_fixture.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

TEST(CheckDebugFiles, LooksForTheFolderOfBuildIds) {
  RecordedMachine recorded;
  EXPECT_EQ(check_debug_files(recorded.machine()).state, CheckState::missing);
  recorded.file("/usr/lib/debug/.build-id/aa/bb.debug", "");
  EXPECT_EQ(check_debug_files(recorded.machine()).state, CheckState::ok);
}

TEST(CheckDebuginfod, AnyAnswerIsOne) {
  const RawServer with_page(http_answer("a front page"));
  const RawServer without("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  DebuginfodSettings settings{.urls = {with_page.url(), without.url()}, .cache_folder = "/cache"};
  const Finding finding = check_debuginfod(settings);
  EXPECT_EQ(finding.state, CheckState::ok);
  EXPECT_THAT(finding.fact, HasSubstr("2 of 2"));
  RawServer gone("");
  settings.urls.push_back(gone.url());
  gone.close();
  EXPECT_EQ(check_debuginfod(settings).state, CheckState::limited);
  settings.urls = {settings.urls.back()};
  EXPECT_EQ(check_debuginfod(settings).state, CheckState::missing);
  EXPECT_THAT(check_debuginfod(settings).meaning, HasSubstr("refused"));
}

TEST(CheckDebuginfod, IsNotAskedForWithoutTheVariable) {
  const Finding finding = check_debuginfod(std::nullopt);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.cure.command, HasSubstr("export DEBUGINFOD_URLS="));
}

TEST(CheckDebuginfod, DoesNotWaitForAServerThatHangs) {
  const RawServer silent([](const RawServer::Client& client) { client.wait_until_gone(); });
  const DebuginfodSettings settings{.urls = {silent.url(), silent.url()}, .cache_folder = "/cache"};
  EXPECT_EQ(check_debuginfod(settings, std::chrono::milliseconds(50)).state, CheckState::missing);
}

}  // namespace
}  // namespace ddprof
