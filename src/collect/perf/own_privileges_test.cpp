#include "collect/perf/own_privileges.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

TEST(OwnPrivileges, AreReadFromProc) {
  const ScratchFolder folder;
  folder.write("proc/sys/kernel/perf_event_paranoid", "-1\n");
  folder.write("proc/self/status",
               "Name:\tx\nCapEff:\t0000004000080000\nCapBnd:\t0000004000000000\nNoNewPrivs:\t0\nSeccomp:"
               "\t2\nSeccomp_filters:\t1\n");
  const OwnPrivileges privileges = own_privileges(folder.path());
  EXPECT_EQ(privileges.paranoid, -1);
  EXPECT_TRUE(privileges.has(CAP_PERFMON));
  EXPECT_TRUE(privileges.has(CAP_SYS_PTRACE));
  EXPECT_FALSE(privileges.has(CAP_SYS_ADMIN));
  EXPECT_TRUE(privileges.may_monitor());
  EXPECT_TRUE(privileges.is_seccomp_filtered);
  EXPECT_TRUE(privileges.may_gain(CAP_PERFMON));
  EXPECT_FALSE(privileges.may_gain(CAP_SYS_PTRACE));
  folder.write("proc/self/status", "CapBnd:\t0000004000000000\nNoNewPrivs:\t1\n");
  EXPECT_FALSE(own_privileges(folder.path()).may_gain(CAP_PERFMON));
}

TEST(OwnPrivileges, OfAnotherUserNamespaceDoNotCount) {
  const ScratchFolder folder;
  folder.write("proc/self/status", "CapEff:\t000001ffffffffff\nSeccomp:\t0\n");
  std::filesystem::create_directories(folder.path("proc/self/ns"));
  std::filesystem::create_symlink("user:[4026531837]", folder.path("proc/self/ns/user"));
  EXPECT_TRUE(own_privileges(folder.path()).may_monitor());
  std::filesystem::remove(folder.path("proc/self/ns/user"));
  std::filesystem::create_symlink("user:[4026532209]", folder.path("proc/self/ns/user"));
  const OwnPrivileges privileges = own_privileges(folder.path());
  EXPECT_FALSE(privileges.may_monitor());
  EXPECT_FALSE(privileges.has(CAP_IPC_LOCK));
  EXPECT_NE(privileges.capabilities, 0U);
}

TEST(OwnPrivileges, AreNoneWithoutProc) {
  const ScratchFolder folder;
  const OwnPrivileges privileges = own_privileges(folder.path());
  EXPECT_FALSE(privileges.paranoid);
  EXPECT_FALSE(privileges.may_monitor());
  EXPECT_FALSE(privileges.is_seccomp_filtered);
}

}  // namespace
}  // namespace ddprof
