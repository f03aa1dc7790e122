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

constexpr const char* kGoodKey = "0123456789abcdef0123456789abcdef";

std::string place_of(const std::vector<const char*>& args,
                     std::map<std::string, std::string> variables = {}) {
  variables.emplace("DD_API_KEY", kGoodKey);
  const OptionFixture fixture{.variables = std::move(variables)};
  const auto place = chosen_agent(fixture.parsed(args));
  return place ? place->text() : "none";
}

TEST(IntakeRules, TheSiteNamesTheIntake) {
  EXPECT_EQ(place_of({"--agentless", "x"}), "https://intake.profile.datadoghq.com");
  EXPECT_EQ(place_of({"x"}, {{"DD_PROFILING_AGENTLESS", "true"}, {"DD_SITE", "datadoghq.eu"}}),
            "https://intake.profile.datadoghq.eu");
  EXPECT_EQ(place_of({"--agentless", "-U", "https://localhost:1", "x"}), "https://localhost:1");
  EXPECT_EQ(place_of({"--agentless", "--do-export=false", "x"}), "none");
}

TEST(IntakeRules, AKeyAloneChangesNothing) { EXPECT_EQ(place_of({"x"}), "none"); }

TEST(IntakeRules, TheIntakeIsNotWhereTheAgentIs) {
  EXPECT_EQ(place_of({"--agentless", "x"}, {{"DD_TRACE_AGENT_URL", "http://agent:8126"}}),
            "https://intake.profile.datadoghq.com");
}

TEST(IntakeRules, WhoAsksForTheIntakeNeedsAKey) {
  EXPECT_THAT(failure({"--agentless", "x"}).message, HasSubstr("needs an API key"));
  EXPECT_THAT(failure({"--agentless", "x"}).hint, HasSubstr("DD_API_KEY"));
  const Error brief = failure({"--agentless", "--api-key", "abracadabra", "x"});
  EXPECT_THAT(brief.message, AllOf(HasSubstr("11 characters"), Not(HasSubstr("abracadabra"))));
  const std::string broken = std::string(kGoodKey) + "\r\nX: y";
  EXPECT_THAT(failure({"--agentless", "--api-key", broken.c_str(), "x"}).message, Not(HasSubstr("X: y")));
}

TEST(IntakeRules, AKeyNeverTravelsInTheOpen) {
  const OptionFixture fixture{.variables = {{"DD_API_KEY", kGoodKey}}};
  EXPECT_THAT(fixture.failure({"--agentless", "-U", "http://x", "x"}).message, HasSubstr("https://"));
  EXPECT_THAT(fixture.failure({"--agentless", "--site", "no site", "x"}).hint, HasSubstr("--site"));
}

TEST(IntakeRules, AnEnvironmentWithoutAKeyIsLeftAlone) {
  const OptionFixture fixture{
      .variables = {{"DD_PROFILING_AGENTLESS", "1"}, {"DD_TRACE_AGENT_URL", "http://agent:1"}}};
  const Options options = fixture.parsed({"x"});
  EXPECT_THAT(options.notices,
              Contains(AllOf(HasSubstr("DD_PROFILING_AGENTLESS is left alone"), HasSubstr("DD_API_KEY"))));
  EXPECT_EQ(chosen_agent(options)->text(), "http://agent:1");
}

}  // namespace
}  // namespace ddprof
