#include "cli/option_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/option_fixture.hpp"
#include "export/peers.hpp"

namespace ddprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string agent_of(const std::vector<const char*>& args,
                     const std::map<std::string, std::string>& variables = {}) {
  const OptionFixture fixture{.variables = variables};
  const auto agent = chosen_agent(fixture.parsed(args));
  return agent ? agent->text() : "none";
}

TEST(AgentChoice, IsNoneByDefault) {
  EXPECT_EQ(agent_of({"x"}), "none");
  EXPECT_EQ(agent_of({"x"}, {{"DD_AGENT_HOST", ""}, {"DD_TRACE_AGENT_URL", ""}}), "none");
  EXPECT_EQ(agent_of({"x"}, {{"DD_API_KEY", "0123456789abcdef0123456789abcdef"}}), "none");
}

TEST(AgentChoice, IsWhatSomebodyNamed) {
  EXPECT_EQ(agent_of({"-U", "agent:1", "x"}), "http://agent:1");
  EXPECT_EQ(agent_of({"-H", "agent", "x"}), "http://agent:8126");
  EXPECT_EQ(agent_of({"-P", "99", "x"}), "http://localhost:99");
  EXPECT_EQ(agent_of({"x"}, {{"DD_AGENT_HOST", "a"}, {"DD_TRACE_AGENT_PORT", "7"}}), "http://a:7");
  EXPECT_EQ(agent_of({"x"}, {{"DD_AGENT_HOST", "a"}, {"DD_TRACE_AGENT_URL", "unix:///run/s"}}),
            "unix:///run/s");
  const OptionFixture fixture{.files = {{"./ddprof.toml", "url = '/run/agent.sock'\n"}}};
  EXPECT_EQ(chosen_agent(fixture.parsed({"x"}))->text(), "unix:///run/agent.sock");
}

TEST(AgentChoice, IsNoneWhenNothingMayBeSent) {
  EXPECT_EQ(agent_of({"-U", "agent:1", "--no-do-export", "x"}), "none");
}

TEST(AgentChoice, FallsBackFromAnAddressInTheEnvironmentThatIsNone) {
  const OptionFixture fixture{
      .variables = {{"DD_TRACE_AGENT_URL", "http://me:secret@x"}, {"DD_AGENT_HOST", "a"}}};
  const Options options = fixture.parsed({"x"});
  EXPECT_EQ(chosen_agent(options)->text(), "http://a:8126");
  EXPECT_THAT(options.notices,
              Contains(AllOf(HasSubstr("DD_TRACE_AGENT_URL is left alone"), Not(HasSubstr("secret")))));
}

TEST(AgentChoice, RefusesAnAddressThatWasTypedWrong) {
  EXPECT_THAT(failure({"-U", "ftp://agent", "x"}).message, HasSubstr("--url: read URL ftp://agent"));
  EXPECT_THAT(failure({"-U", "http://me:secret@x", "x"}).message, Not(HasSubstr("secret")));
}

TEST(AgentChoice, NamesTheTagsThatAreLeftOut) {
  EXPECT_THAT(parsed({"-T", "good:1,bad:", "x"}).notices, Contains(HasSubstr("left out: bad:;")));
}

TEST(AgentChoice, DescribesTheAgentInTheSummary) {
  Options options = parsed({"-H", "agent", "x"});
  EXPECT_EQ(agent_peer(*chosen_agent(options), options, "x", {}).place, "http://agent:8126");
}

}  // namespace
}  // namespace ddprof
