#include "doctor/agent_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"
#include "net/raw_server_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;

Finding check(const std::string& url) { return check_agent(AgentAddress::parse(url, "localhost", 8126)); }

TEST(CheckAgent, AsksWhetherItTakesProfiles) {
  const RawServer agent(http_answer(R"({"endpoints":["/v0.4/traces","/profiling/v1/input"]})"));
  EXPECT_EQ(check(agent.url()).state, CheckState::ok);
  EXPECT_THAT(agent.requests().front(), testing::StartsWith("GET /info HTTP/1.1"));
  const RawServer other(http_answer("hello"));
  EXPECT_EQ(check(other.url()).state, CheckState::limited);
}

TEST(CheckAgent, SaysWhyThereIsNoAnswer) {
  RawServer gone("");
  const std::string url = gone.url();
  gone.close();
  const Finding finding = check(url);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.fact, HasSubstr("refused"));
  EXPECT_EQ(check("http://no spaces").state, CheckState::missing);
}

TEST(CheckAgent, DoesNotWaitForOneThatHangs) {
  const RawServer silent([](const RawServer::Client& client) { client.wait_until_gone(); });
  const Finding finding =
      check_agent(AgentAddress::parse(silent.url(), "", 0), std::chrono::milliseconds(50));
  EXPECT_EQ(finding.state, CheckState::missing);
}

TEST(CheckAgent, ConnectsToASocket) {
  const ScratchFolder folder;
  const std::string path = folder.path("agent.sock");
  EXPECT_EQ(check(path).state, CheckState::missing);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(check(path).state, CheckState::ok);
  EXPECT_EQ(check("unix://" + path).state, CheckState::ok);
  EXPECT_THAT(check("/" + std::string(200, 'x')).fact, HasSubstr("too long"));
}

TEST(CheckAgent, AStrangersListenerGetsNothing) {
  const auto address = AgentAddress::parse("", "localhost", 8126);
  const Finding finding = check_found_agent(address, 61001);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.fact, HasSubstr("a process of user 61001 listens there"));
  EXPECT_THAT(finding.hint.command, HasSubstr("--url http://localhost:8126"));
}

}  // namespace
}  // namespace ddprof
