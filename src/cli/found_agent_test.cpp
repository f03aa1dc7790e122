#include "cli/option_rules.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.hpp"
#include "cli/option_fixture.hpp"
#include "export/peers.hpp"

namespace ddprof {
namespace {

struct FakeMachine {
  bool has_socket = false, has_listener = false;

  [[nodiscard]] std::string agent_of(const std::vector<const char*>& args,
                                     const std::map<std::string, std::string>& variables = {}) const {
    Options options = OptionFixture{.variables = variables}.parsed(args);
    find_agent(options, {[this](const std::string& path) {
                           return has_socket && path == "/var/run/datadog/apm.socket";
                         },
                         [this](std::uint16_t port) { return has_listener && port == 8126; }});
    const auto agent = chosen_agent(options);
    return agent ? agent->text() : "none";
  }
};

const FakeMachine kEmpty{};
const FakeMachine kBoth{.has_socket = true, .has_listener = true};
const FakeMachine kPortOnly{.has_socket = false, .has_listener = true};

TEST(FoundAgent, IsAtTheUsualSocketOrElseAtTheUsualPort) {
  EXPECT_EQ(kBoth.agent_of({"x"}), "unix:///var/run/datadog/apm.socket");
  EXPECT_EQ(kPortOnly.agent_of({"x"}), "http://localhost:8126");
  EXPECT_EQ(kPortOnly.agent_of({"-p", "1"}), "http://localhost:8126");
  EXPECT_EQ(kPortOnly.agent_of({"-g"}), "http://localhost:8126");
  EXPECT_EQ(kEmpty.agent_of({"x"}), "none");
}

TEST(FoundAgent, IsNotLookedForWhenSomebodyNamedOne) {
  EXPECT_EQ(kBoth.agent_of({"-U", "agent:1", "x"}), "http://agent:1");
  EXPECT_EQ(kBoth.agent_of({"x"}, {{"DD_AGENT_HOST", "a"}}), "http://a:8126");
  EXPECT_EQ(kBoth.agent_of({"x"}, {{"DD_AGENT_HOST", ""}, {"DD_TRACE_AGENT_PORT", ""}}),
            "unix:///var/run/datadog/apm.socket");
}

TEST(FoundAgent, IsNotLookedForWhenProfilesAreToStayHere) {
  EXPECT_EQ(kBoth.agent_of({"record", "x"}), "none");
  EXPECT_EQ(kBoth.agent_of({"--do-export=false", "x"}), "none");
  EXPECT_EQ(kBoth.agent_of({"--no-find-agent", "x"}), "none");
  EXPECT_EQ(kBoth.agent_of({"-O", "x.pprof", "x"}), "none");
  EXPECT_EQ(kBoth.agent_of({"--enable=false", "x"}), "none");
}

TEST(FoundAgent, OfAStrangerIsNotUsedUnlessItIsNamed) {
  const AgentProbe probe{.has_socket = [](const std::string&) { return false; },
                         .has_listener = [](std::uint16_t) { return true; },
                         .stranger_at_port = [](std::uint16_t) { return std::optional<uid_t>(61001); }};
  Options options = parsed({"-g"});
  find_agent(options, probe);
  EXPECT_FALSE(chosen_agent(options).has_value());
  ASSERT_EQ(options.warnings.size(), 1U);
  EXPECT_EQ(options.warnings[0],
            "http://localhost:8126: a process of user 61001 listens there, neither root's nor dd-agent's; no "
            "profile is sent to it, unless it is named: --url http://localhost:8126");
  options = parsed({"-g", "--url", "http://localhost:8126"});
  find_agent(options, probe);
  EXPECT_TRUE(options.warnings.empty());
  EXPECT_EQ(chosen_agent(options)->text(), "http://localhost:8126");
}

TEST(FoundAgent, ListensAtLoopback) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), generic, size), 0);
  ASSERT_EQ(::getsockname(listener.get(), generic, &size), 0);
  const AgentProbe probe = agent_probe();
  EXPECT_FALSE(probe.has_listener(ntohs(address.sin_port)));
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_TRUE(probe.has_listener(ntohs(address.sin_port)));
  EXPECT_FALSE(probe.has_socket("/dev/null"));
}

}  // namespace
}  // namespace ddprof
