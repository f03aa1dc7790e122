#include "export/host_shares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/labels.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Task {
  std::int64_t pid = 0;
  std::string service, container;
  std::int64_t cpu = 0;
};

Profile profile_of(const std::vector<Task>& tasks) {
  ProfileBuilder builder;
  builder.profile().value_types = {builder.value_type("samples", "count"),
                                   builder.value_type("cpu", "nanoseconds")};
  builder.profile().comments.push_back(builder.intern("of all"));
  for (const Task& task : tasks) {
    std::vector<ProfileLabel> labels = {builder.number_label(kProcessIdLabel, task.pid)};
    if (!task.service.empty()) labels.push_back(builder.text_label(kServiceLabel, task.service));
    if (!task.container.empty()) labels.push_back(builder.text_label(kContainerIdLabel, task.container));
    builder.add_sample({{builder.add_named_location("main")}, {1, task.cpu}, std::move(labels)});
  }
  return std::move(builder).build();
}

std::vector<ShareIdentity> by_labels(std::span<const SampleOrigin> origins) {
  std::vector<ShareIdentity> identities(origins.size());
  for (std::size_t i = 0; i < origins.size(); ++i) {
    identities[i].service = origins[i].service;
    identities[i].container_id = origins[i].container_id;
  }
  return identities;
}

std::vector<Share> shares_of(HostShares& shares, const Profile& profile) {
  std::vector<Share> all;
  shares.cut(profile, [&](Share share) { all.push_back(std::move(share)); });
  return all;
}

std::int64_t cpu_of(const Profile& profile) {
  std::int64_t sum = 0;
  for (const ProfileSample& sample : profile.samples) sum += sample.values[1];
  return sum;
}

TEST(HostShares, AreOneForEachServiceInEachContainer) {
  HostShares shares(by_labels);
  const auto cut = shares_of(shares, profile_of({{1, "shop", "c1", 10},
                                                 {2, "shop", "c2", 30},
                                                 {3, "shop", "c1", 10},
                                                 {0, "", "", 90},
                                                 {4, "bank", "", 15}}));
  ASSERT_EQ(cut.size(), 4U);
  EXPECT_EQ(cut[0].identity.container_id, "c2");
  EXPECT_EQ(cut[1].identity.container_id, "c1");
  EXPECT_THAT(cut[1].pids, ElementsAre(1, 3));
  EXPECT_EQ(cut[2].identity.service, "bank");
  EXPECT_TRUE(cut[3].identity.is_host()) << "the host's comes last";
  EXPECT_THAT(cut[3].pids, ElementsAre());
  EXPECT_THAT((std::vector{cpu_of(cut[0].profile), cpu_of(cut[1].profile), cpu_of(cut[2].profile),
                           cpu_of(cut[3].profile)}),
              ElementsAre(30, 20, 15, 90));
}

TEST(HostShares, OnlyTheHostsHasComments) {
  HostShares shares(by_labels);
  const auto cut = shares_of(shares, profile_of({{1, "shop", "c1", 10}, {0, "", "", 90}}));
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_TRUE(cut[0].profile.comments.empty());
  ASSERT_EQ(cut[1].profile.comments.size(), 1U);
  EXPECT_EQ(cut[1].profile.text(cut[1].profile.comments[0]), "of all");
}

TEST(HostShares, TheSmallestGoWithTheHostWhenThereAreTooManyAndThatIsSaid) {
  std::vector<std::string> said;
  HostShares shares(
      by_labels, [&](const std::string& text) { said.push_back(text); }, 3);
  const Profile profile =
      profile_of({{1, "a", "", 1}, {2, "b", "", 20}, {3, "c", "", 3}, {4, "d", "", 40}, {0, "", "", 5}});
  for (int period = 0; period < 2; ++period) {
    const auto cut = shares_of(shares, profile);
    ASSERT_EQ(cut.size(), 3U);
    EXPECT_EQ(cut[0].identity.service, "d");
    EXPECT_EQ(cut[1].identity.service, "b");
    EXPECT_TRUE(cut[2].identity.is_host());
    EXPECT_EQ(cpu_of(cut[2].profile), 9);
    EXPECT_THAT(cut[2].pids, ElementsAre(1, 3));
    EXPECT_THAT(std::string(cut[2].profile.text(cut[2].profile.comments.back())),
                HasSubstr("2 more services"));
    EXPECT_THAT(cut[2].profile.strings, testing::Contains("a")) << "labels tell them apart";
  }
  EXPECT_THAT(said, ElementsAre(HasSubstr("2 more services than fit in 3 uploads")));
}

TEST(HostShares, AreNoneForAProfileWithoutSamples) {
  HostShares shares(by_labels);
  EXPECT_TRUE(shares_of(shares, profile_of({})).empty());
}

}  // namespace
}  // namespace ddprof
