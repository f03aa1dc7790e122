#include "doctor/place_checks.hpp"

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
  EXPECT_THAT(finding.hint.command, HasSubstr("export DEBUGINFOD_URLS="));
}

TEST(CheckDebuginfod, DoesNotWaitForAServerThatHangs) {
  const RawServer silent([](const RawServer::Client& client) { client.wait_until_gone(); });
  const DebuginfodSettings settings{.urls = {silent.url(), silent.url()}, .cache_folder = "/cache"};
  EXPECT_EQ(check_debuginfod(settings, std::chrono::milliseconds(50)).state, CheckState::missing);
}

using testing::HasSubstr;

TEST(CheckContainer, KnowsTheSignsOfEachRuntime) {
  EXPECT_FALSE(is_in_container(RecordedMachine().machine()));
  RecordedMachine docker, podman, kubernetes;
  docker.file("/.dockerenv", "");
  podman.file("/run/.containerenv", "engine=\"podman-4.3.1\"\n");
  kubernetes.file("/proc/self/cgroup",
                  "0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-0a1b.scope\n");
  EXPECT_THAT(check_container(docker.machine()).fact, HasSubstr("/.dockerenv"));
  EXPECT_THAT(check_container(podman.machine()).fact, HasSubstr("/run/.containerenv"));
  EXPECT_THAT(check_container(kubernetes.machine()).fact, HasSubstr("kubepods"));
}

TEST(CheckPidNamespace, KnowsTheFirstOne) {
  RecordedMachine recorded;
  recorded.link("/proc/self/ns/pid", "pid:[4026531836]");
  EXPECT_EQ(check_pid_namespace(recorded.machine()).state, CheckState::ok);
  recorded.link("/proc/self/ns/pid", "pid:[4026532441]");
  const Finding finding = check_pid_namespace(recorded.machine());
  EXPECT_EQ(finding.state, CheckState::limited);
  EXPECT_EQ(finding.hint.docker, "--pid host");
  EXPECT_EQ(finding.hint.kubernetes, "hostPID: true");
}

TEST(CheckCgroup, ReadsTheMemoryLimitOfBothVersions) {
  RecordedMachine second;
  second.file("/proc/self/cgroup", "0::/app.slice\n")
      .file("/sys/fs/cgroup/app.slice/memory.max", "268435456\n");
  const Finding small = check_cgroup(second.machine());
  EXPECT_EQ(small.state, CheckState::limited);
  EXPECT_THAT(small.meaning, HasSubstr("256 MiB"));
  EXPECT_EQ(small.fact, "control groups of version 2");
  second.file("/sys/fs/cgroup/app.slice/memory.max", "max\n");
  EXPECT_EQ(check_cgroup(second.machine()).state, CheckState::ok);

  RecordedMachine first;
  first.file("/proc/self/cgroup", "5:devices:/\n4:memory:/job\n0::/\n");
  first.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
  EXPECT_EQ(check_cgroup(first.machine()).state, CheckState::ok);
  EXPECT_THAT(check_cgroup(first.machine()).meaning, HasSubstr("2048 MiB"));
  first.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(check_cgroup(first.machine()).meaning, HasSubstr("not limited"));
}

TEST(CheckCgroup, TakesAnyTextForWhatItIs) {
  RecordedMachine recorded;
  for (const std::string_view text :
       {"", ":", "::", "\n\n", "no colons", "memory", "1:memory", "1:memory:"}) {
    recorded.file("/proc/self/cgroup", text);
    EXPECT_EQ(check_cgroup(recorded.machine()).state, CheckState::ok) << text;
  }
}

TEST(LimitToNamespace, LimitsTheViewOfTheHost) {
  const std::vector<Ability> able = {{.name = "own-programs"}, {.name = std::string(kWholeHostAbility)}};
  RecordedMachine recorded;
  std::vector<Ability> first = able;
  limit_to_namespace(recorded.link("/proc/self/ns/pid", "pid:[4026531836]").machine(), first);
  EXPECT_EQ(first[1].state, CheckState::ok);
  recorded.link("/proc/self/ns/pid", "pid:[4026532441]");
  std::vector<Ability> other = able;
  limit_to_namespace(recorded.machine(), other);
  EXPECT_EQ(other[0].state, CheckState::ok);
  EXPECT_EQ(other[1].state, CheckState::limited);
  EXPECT_EQ(other[1].hint.kubernetes, "hostPID: true");
  std::vector<Ability> without = able;
  without[1].state = CheckState::missing;
  limit_to_namespace(recorded.machine(), without);
  EXPECT_EQ(without[1].state, CheckState::missing);
}

}  // namespace

}  // namespace ddprof
