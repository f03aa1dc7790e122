#include "export/addresses.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

std::string intake_of(const std::string& url, const std::string& site = std::string(kUsualSite)) {
  auto address = intake_address(url, site);
  return address ? address->text() : "error";
}

TEST(IntakeAddress, IsThatOfTheSite) {
  EXPECT_EQ(intake_of(""), "https://intake.profile.datadoghq.com");
  EXPECT_EQ(intake_of("", "us3.datadoghq.com"), "https://intake.profile.us3.datadoghq.com");
  EXPECT_EQ(intake_of("", "intake.profile.datadoghq.eu"), "https://intake.profile.datadoghq.eu");
}

TEST(IntakeAddress, IsWhatSomebodyNamed) {
  EXPECT_EQ(intake_of("https://localhost:8443/"), "https://localhost:8443");
  EXPECT_EQ(intake_of("ddog-gov.com"), "https://intake.profile.ddog-gov.com");
}

TEST(IntakeAddress, KeepsKeysOffOpenLinesAndOtherPlaces) {
  for (const char* url : {"http://localhost:8126", "unix:///run/agent.sock", "/run/agent.sock", "agent:8126",
                          "https://", "https://me:secret@x", "localhost"})
    EXPECT_EQ(intake_of(url), "error") << url;
  EXPECT_EQ(intake_of("", "evil.example/x"), "error");
  EXPECT_EQ(intake_of("", "a b.c"), "error");
}

TEST(IntakeAddress, ASiteHasTheLettersOfADomainAndNoOthers) {
  EXPECT_EQ(intake_of("", "azAZ09-.com"), "https://intake.profile.azAZ09-.com");
  for (const char other : {'`', '{', '@', '[', '/', ':', ','})
    EXPECT_EQ(intake_of("", std::string("a.c") + other), "error") << other;
}

}  // namespace
}  // namespace ddprof
