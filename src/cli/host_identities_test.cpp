#include "cli/host_identities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class Identities : public testing::Test {
 protected:
  ShareIdentity one(const SampleOrigin& origin) {
    return identities_.identify(std::span(&origin, 1), now_).front();
  }

  std::map<std::int32_t, ProcessIdentity> living_;
  int readings_ = 0;
  HostIdentities::Clock::time_point now_{minutes(1)};
  HostIdentities identities_{[this](Pid pid) -> std::optional<ProcessIdentity> {
    readings_++;
    const auto found = living_.find(to_int(pid));
    return found == living_.end() ? std::nullopt : std::optional(found->second);
  }};
};

ProcessIdentity shop() {
  ProcessIdentity said;
  said.service = said.program = "shop";
  said.environment = "prod";
  said.version = "2";
  said.container_id = "c1";
  said.entity_id = "ci-c1";
  return said;
}

constexpr SampleOrigin kShop{7, "shop", "c1", "/docker/c1"};

TEST_F(Identities, AreWhatAProcessSaysOfItself) {
  living_[7] = shop();
  const ShareIdentity identity = one(kShop);
  EXPECT_EQ(identity.service, "shop");
  EXPECT_EQ(identity.environment, "prod");
  EXPECT_EQ(identity.version, "2");
  EXPECT_EQ(identity.entity_id, "ci-c1");
}

TEST_F(Identities, OfTheKernelAreTheHosts) {
  EXPECT_TRUE(one({2, "", "", ""}).is_host());
  EXPECT_EQ(readings_, 0);
}

TEST_F(Identities, OfAProcessThatEndedAreThoseOfItsLabels) {
  const ShareIdentity identity = one(kShop);
  EXPECT_EQ(identity.service, "shop");
  EXPECT_EQ(identity.container_id, "c1");
  EXPECT_EQ(identity.entity_id, "ci-c1");
}

TEST_F(Identities, OfAProcessThatEndedAreThoseOfItsKin) {
  living_[7] = shop();
  living_[7].instance_id = "its own";
  const SampleOrigin origins[] = {{6, "shop", "c1", ""}, kShop, {8, "shop", "c2", ""}};
  const auto identities = identities_.identify(origins, now_);
  EXPECT_EQ(identities[0].environment, "prod");
  EXPECT_EQ(identities[0].instance_id, "");
  EXPECT_EQ(identities[1].instance_id, "its own");
  EXPECT_EQ(identities[2].environment, "") << "another container";
}

TEST_F(Identities, StayWhenTheProcessEnds) {
  living_[7] = shop();
  const ShareIdentity before = one(kShop);
  living_.clear();
  now_ += minutes(1);
  EXPECT_EQ(one(kShop), before);
}

TEST_F(Identities, AreNotThoseOfAnotherProcessOfThatNumber) {
  living_[7] = shop();
  living_[7].service = living_[7].program = "bank";
  EXPECT_EQ(one(kShop).environment, "");
  living_[7] = shop();
  living_[7].container_id = "c2";
  now_ += minutes(1);
  EXPECT_EQ(one(kShop).environment, "");
}

TEST_F(Identities, TakeAServiceThatIsPublishedForOneThatNobodyConfigured) {
  living_[7] = shop();
  living_[7].program = "java";
  EXPECT_EQ(one({7, "java", "c1", ""}).service, "shop");
}

TEST_F(Identities, AreReadAgainSoonAndThenSeldom) {
  living_[7] = shop();
  one(kShop);
  one(kShop);
  EXPECT_EQ(readings_, 1) << "two peers";
  living_[7].instance_id = "published late";
  now_ += seconds(31);
  EXPECT_EQ(one(kShop).instance_id, "published late");
  now_ += minutes(5);
  one(kShop);
  EXPECT_EQ(readings_, 2);
}

}  // namespace
}  // namespace ddprof
