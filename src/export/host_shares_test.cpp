#include "export/host_shares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/profile.hpp"
#include "profile/profile_builder.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kByProcess = HostShares::Detail::process;

struct Task {
  std::int64_t pid = 0;
  std::string service, container;
  std::int64_t cpu = 0;
  std::int64_t bytes = 0;
};

// The kinds are CPU time and, where a task has any, allocations.
Batch batch_of(const std::vector<Task>& tasks) {
  Batch batch{.processes = std::vector<ProcessIdentity>(1)};
  ProfileBuilder cpu, alloc;
  cpu.profile().value_types = {cpu.value_type("samples", "count"), cpu.value_type("cpu", "nanoseconds")};
  alloc.profile().value_types = {alloc.value_type("alloc-space", "bytes")};
  cpu.profile().comments.push_back(cpu.intern("of all"));
  for (const Task& task : tasks) {
    const auto process = static_cast<std::uint32_t>(task.service.empty() ? 0 : batch.processes.size());
    ProcessIdentity identity;
    identity.pid = task.pid;
    identity.service = identity.program = task.service;
    identity.container_id = task.container;
    if (process != 0) batch.processes.push_back(identity);
    const auto add = [&](ProfileBuilder& builder, std::vector<std::int64_t> values) {
      ProfileSample sample{{builder.add_named_location("main")},
                           std::move(values),
                           {builder.text_label(kServiceLabel, task.service)}};
      sample.process = process;
      builder.add_sample(std::move(sample));
    };
    if (task.cpu > 0) add(cpu, {1, task.cpu});
    if (task.bytes > 0) add(alloc, {task.bytes});
  }
  batch.parts.push_back({"cpu", std::move(cpu).build()});
  batch.parts.push_back({"alloc", std::move(alloc).build()});
  return batch;
}

std::vector<Share> shares_of(HostShares& shares, const Batch& batch) {
  std::vector<Share> all;
  shares.cut(batch, [&](Share share) { all.push_back(std::move(share)); });
  return all;
}

const Profile& cpu_profile(const Share& share) { return share.batch.parts.at(0).profile; }

std::int64_t cpu_of(const Share& share) {
  std::int64_t sum = 0;
  for (const ProfileSample& sample : cpu_profile(share).samples) sum += sample.values[1];
  return sum;
}

TEST(HostShares, AreOneForEachServiceInEachContainer) {
  HostShares shares(kByProcess);
  const auto cut = shares_of(shares, batch_of({{1, "shop", "c1", 10},
                                               {2, "shop", "c2", 30},
                                               {3, "shop", "c1", 10},
                                               {0, "", "", 90},
                                               {4, "bank", "", 15}}));
  ASSERT_EQ(cut.size(), 4U);
  EXPECT_EQ(cut[0].identity.container_id, "c2");
  EXPECT_EQ(cut[1].identity.container_id, "c1");
  EXPECT_EQ(cut[1].process_id, 0) << "there are two";
  EXPECT_EQ(cut[2].process_id, 4);
  EXPECT_EQ(cut[2].identity.service, "bank");
  EXPECT_TRUE(cut[3].identity.service.empty()) << "the host's comes last";
  EXPECT_THAT((std::vector{cpu_of(cut[0]), cpu_of(cut[1]), cpu_of(cut[2]), cpu_of(cut[3])}),
              ElementsAre(30, 20, 15, 90));
}

TEST(HostShares, OnlyTheHostsHasComments) {
  HostShares shares(kByProcess);
  const auto cut = shares_of(shares, batch_of({{1, "shop", "c1", 10}, {0, "", "", 90}}));
  ASSERT_EQ(cut.size(), 2U);
  EXPECT_TRUE(cpu_profile(cut[0]).comments.empty());
  ASSERT_EQ(cpu_profile(cut[1]).comments.size(), 1U);
  EXPECT_EQ(cpu_profile(cut[1]).text(cpu_profile(cut[1]).comments[0]), "of all");
}

TEST(HostShares, TheSmallestGoWithTheHostWhenThereAreTooManyAndThatIsSaid) {
  std::vector<std::string> said;
  HostShares shares(
      kByProcess, [&](const std::string& text) { said.push_back(text); }, 3);
  const Batch batch =
      batch_of({{1, "a", "", 1}, {2, "b", "", 20}, {3, "c", "", 3}, {4, "d", "", 40}, {0, "", "", 5}});
  for (int period = 0; period < 2; ++period) {
    const auto cut = shares_of(shares, batch);
    ASSERT_EQ(cut.size(), 3U);
    EXPECT_EQ(cut[0].identity.service, "d");
    EXPECT_EQ(cut[1].identity.service, "b");
    EXPECT_TRUE(cut[2].identity.service.empty());
    EXPECT_EQ(cpu_of(cut[2]), 9);
    EXPECT_THAT(std::string(cpu_profile(cut[2]).text(cpu_profile(cut[2]).comments.back())),
                HasSubstr("2 more services"));
    EXPECT_THAT(cpu_profile(cut[2]).strings, testing::Contains("a")) << "labels tell them apart";
  }
  EXPECT_THAT(said, ElementsAre(HasSubstr("2 more services than fit in 3 uploads")));
}

TEST(HostShares, HaveAPartForEachKindThatTheyHaveSamplesOf) {
  HostShares shares(kByProcess);
  const auto cut = shares_of(
      shares,
      batch_of({{1, "shop", "", 10, 500}, {2, "bank", "", 10}, {3, "heap", "", 0, 900}, {0, "", "", 1, 7}}));
  ASSERT_EQ(cut.size(), 4U);
  const auto kinds_of = [](const Share& share) {
    std::vector<std::string> kinds;
    for (const Batch::Part& part : share.batch.parts) kinds.push_back(part.kind);
    return kinds;
  };
  EXPECT_EQ(cut[0].identity.service, "shop") << "as much CPU time as the next, and more allocations";
  EXPECT_THAT(kinds_of(cut[0]), ElementsAre("cpu", "alloc"));
  EXPECT_EQ(cut[0].batch.parts[1].profile.samples.at(0).values.at(0), 500);
  EXPECT_THAT(kinds_of(cut[1]), ElementsAre("cpu"));
  EXPECT_EQ(cut[2].identity.service, "heap");
  EXPECT_THAT(kinds_of(cut[2]), ElementsAre("alloc"));
  EXPECT_THAT(kinds_of(cut[3]), ElementsAre("cpu", "alloc"));
}

TEST(HostShares, AreAsFineAsABackendWants) {
  Batch batch = batch_of({{1, "shop", "c1", 10}, {2, "shop", "c1", 30}});
  batch.processes[1].instance_id = "one";
  batch.processes[2].instance_id = "two";
  HostShares fine(kByProcess), coarse(HostShares::Detail::container);
  EXPECT_EQ(shares_of(fine, batch).size(), 2U);
  ASSERT_EQ(shares_of(coarse, batch).size(), 1U);
  EXPECT_EQ(shares_of(coarse, batch)[0].identity.instance_id, "");
}

TEST(HostShares, AreNoneForAProfileWithoutSamples) {
  HostShares shares(kByProcess);
  EXPECT_TRUE(shares_of(shares, batch_of({})).empty());
}

}  // namespace
}  // namespace ddprof
