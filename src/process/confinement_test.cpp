#include "process/confinement.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ddprof {
namespace {

const std::string kDigestId = std::string(60, 'a') + "0123";
constexpr std::string_view kUuidId = "34dc0b5e-626f-2c5c-4c51-70e34b10e765";

TEST(Confinement, FindsTheContainerOfDocker) {
  const Confinement found = parse_cgroup("13:name=systemd:/docker/" + kDigestId + "\n12:pids:/docker/x\n");
  EXPECT_EQ(found.container_id, kDigestId);
  EXPECT_EQ(found.cgroup, "/docker/" + kDigestId);
}

TEST(Confinement, FindsTheContainerOfKubernetesInOneHierarchy) {
  const std::string path = "/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + kDigestId + ".scope";
  EXPECT_EQ(parse_cgroup("0::" + path + "\n").container_id, kDigestId);
}

TEST(Confinement, FindsTheContainerOfPodmanOneLevelUp) {
  EXPECT_EQ(container_id_in("/machine.slice/libpod-" + kDigestId + ".scope/container"), kDigestId);
}

TEST(Confinement, FindsOtherKindsOfIds) {
  EXPECT_EQ(container_id_in("/system.slice/garden.service/garden/" + std::string(kUuidId)), kUuidId);
  EXPECT_EQ(container_id_in("/garden/6f265890-5165-7fab-6b52-18d1"), "6f265890-5165-7fab-6b52-18d1");
  EXPECT_EQ(container_id_in("/ecs/55091c13b8cf4801b9527f4601742204/432624d2150b349fe35ba397284dea78-1234"),
            "432624d2150b349fe35ba397284dea78-1234");
  EXPECT_EQ(container_id_in("/kubepods/pod3d274242_8ee0_11e9_a8a6_1e68d864ef1a"),
            "3d274242_8ee0_11e9_a8a6_1e68d864ef1a");
}

TEST(Confinement, KnowsTheControlGroupOutsideOfContainers) {
  const Confinement found = parse_cgroup("0::/user.slice/user-1000.slice/session-3.scope\n");
  EXPECT_EQ(found.container_id, "");
  EXPECT_EQ(found.cgroup, "/user.slice/user-1000.slice/session-3.scope");
  EXPECT_EQ(parse_cgroup("0::/\n").cgroup, "");
}

TEST(Confinement, IsNotLedAstrayByOtherText) {
  for (const char* text :
       {"", "\n\n", "0:", "0::", ":::", "nonsense", "0::/abc-123", "0::/-", "0::/.scope/"}) {
    EXPECT_EQ(parse_cgroup(text).container_id, "") << text;
  }
}

TEST(Confinement, FindsTheDirectoryOfTheControlGroup) {
  EXPECT_EQ(cgroup_directory_in("0::/\n"), "/sys/fs/cgroup/");
  EXPECT_EQ(cgroup_directory_in("0::/a/b\n"), "/sys/fs/cgroup/a/b");
  EXPECT_EQ(cgroup_directory_in("5:cpu,cpuacct:/x\n4:hugetlb,memory:/m\n0::/u\n"), "/sys/fs/cgroup/memory/m");
  EXPECT_EQ(cgroup_directory_in("0::/u\n4:memory:/m\n"), "/sys/fs/cgroup/memory/m");
  EXPECT_EQ(cgroup_directory_in("0::/../other\n"), "");
  for (const char* text : {"", "0:", "0::", "4:memoryless:/x", "nonsense\n"})
    EXPECT_EQ(cgroup_directory_in(text), "") << text;
}

TEST(Confinement, NamesNoEntityOutsideOfContainers) { EXPECT_EQ(read_entity_id(Pid{0x7fffffff}), ""); }

TEST(Confinement, KnowsTheProcessIdInsideOfANamespace) {
  EXPECT_EQ(parse_namespace_pid("Name:\tx\nNSpid:\t4711\t12\t1\nThreads:\t1\n"), Pid{1});
  EXPECT_EQ(parse_namespace_pid("Name:\tx\nNSpid:\t4711\nThreads:\t1\n"), std::nullopt);
  EXPECT_EQ(parse_namespace_pid("Name:\tx\n"), std::nullopt);
  EXPECT_EQ(parse_namespace_pid("NSpid:\t1\tx\n"), std::nullopt);
}

TEST(Confinement, TheEffectiveUserIsTheSecondNumber) {
  EXPECT_EQ(parse_effective_user("Name:\tx\nUid:\t1000\t33\t0\t0\nGid:\t5\t6\t7\t8\n"), 33U);
  EXPECT_EQ(parse_effective_user("Name:\tx\n"), std::nullopt);
  EXPECT_EQ(parse_effective_user("Uid:\t1000\n"), std::nullopt);
  EXPECT_EQ(parse_effective_user("Uid:\n"), std::nullopt);
}

TEST(Confinement, ATaskHasThirtyTwoDigitsAndANumber) {
  const std::string task = "432624d2150b349fe35ba397284dea78";
  EXPECT_EQ(container_id_in("/ecs/" + task + "-1"), task + "-1");
  EXPECT_EQ(container_id_in("/ecs/x" + task + "-1"), task + "-1");
  EXPECT_EQ(container_id_in("/ecs/" + task + "-"), "");
  EXPECT_EQ(container_id_in("/ecs/" + task + "-1x"), "");
  EXPECT_EQ(container_id_in("/ecs/" + task.substr(1) + "-1"), "");
  EXPECT_EQ(container_id_in("/ecs/g" + task.substr(1) + "-1"), "");
}

TEST(Confinement, AnIdHasNoDigitTooFew) {
  EXPECT_EQ(container_id_in("/docker/" + kDigestId.substr(1)), "");
  EXPECT_EQ(container_id_in(kDigestId), kDigestId);
  EXPECT_EQ(container_id_in("/garden/" + std::string(kUuidId.substr(1))), "");
  EXPECT_EQ(container_id_in("/garden/34dc0b5e.626f-2c5c-4c51-70e34b10e765"), "");
}

}  // namespace
}  // namespace ddprof
