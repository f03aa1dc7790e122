#include "collect/perf/perf_refusal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
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

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t bit(int capability) { return std::uint64_t{1} << static_cast<unsigned>(capability); }

OpenFailure refusal(int error_number, int paranoid, std::int32_t task = 0) {
  OpenFailure failure{.error_number = error_number, .what = "sCPU", .task = task};
  failure.own.paranoid = paranoid;
  failure.own.executable = "/usr/bin/ddprof";
  return failure;
}

OpenFailure of_all(int paranoid) { return refusal(EACCES, paranoid, -1); }

OpenFailure of_kernel(int paranoid) {
  OpenFailure failure = refusal(EACCES, paranoid);
  failure.wants_kernel = true;
  return failure;
}

OpenFailure of_another_user(int paranoid) {
  OpenFailure failure = refusal(EACCES, paranoid, 42);
  failure.is_foreign = true;
  return failure;
}

// Root of a container that is rootless, or of `unshare --map-root-user`.
OpenFailure in_user_namespace(OpenFailure failure) {
  failure.own.capabilities = ~std::uint64_t{0};
  failure.own.is_in_first_user_namespace = false;
  failure.own.is_root = true;
  return failure;
}

// Root of a container without the capability, which no file can give either.
OpenFailure in_container(OpenFailure failure) {
  failure.own.bounding = bit(CAP_SYS_PTRACE);
  failure.own.is_root = true;
  return failure;
}

std::string hint_of(const OpenFailure& failure) { return explain(failure).hint; }

TEST(PerfEventRefusal, NamesTheLevel) {
  const Error error = explain(refusal(EACCES, 3));
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("perf_event_paranoid is 3"));
}

TEST(PerfEventRefusal, HintsAtTheLevelThatIsEnoughForWhatWasAsked) {
  EXPECT_EQ(hint_of(refusal(EACCES, 3)),
            "sudo sysctl kernel.perf_event_paranoid=2, or sudo setcap cap_perfmon+ep /usr/bin/ddprof");
  for (const int level : {2, 3, 4}) {
    EXPECT_THAT(hint_of(of_kernel(level)), HasSubstr("perf_event_paranoid=1, or sudo setcap")) << level;
    EXPECT_THAT(hint_of(of_all(level)), HasSubstr("perf_event_paranoid=0, or sudo setcap")) << level;
  }
  EXPECT_THAT(hint_of(of_all(1)), HasSubstr("perf_event_paranoid=0"));
  OpenFailure both = of_all(3);
  both.wants_kernel = true;
  EXPECT_THAT(hint_of(both), HasSubstr("perf_event_paranoid=0"));
}

TEST(PerfEventRefusal, NoLevelIsEnoughForTheProcessOfAnotherUser) {
  for (const int level : {1, 2, 3}) {
    EXPECT_THAT(explain(of_another_user(level)).message, HasSubstr("another user")) << level;
    EXPECT_THAT(hint_of(of_another_user(level)), HasSubstr("setcap cap_perfmon,cap_sys_ptrace+ep")) << level;
    EXPECT_THAT(hint_of(of_another_user(level)), Not(HasSubstr("sysctl"))) << level;
  }
  EXPECT_THAT(hint_of(of_another_user(2)),
              HasSubstr("run ddprof as root or as the user of the process, or sudo"));
  EXPECT_THAT(hint_of(of_another_user(3)), HasSubstr("run ddprof as root, or sudo setcap"));
  // Who may not sample anything himself.
  EXPECT_THAT(hint_of(of_another_user(3)), Not(HasSubstr("as the user of the process")));
}

TEST(PerfEventRefusal, AProcessOfOurOwnMayRefuseToBeTraced) {
  EXPECT_THAT(explain(refusal(EACCES, 2, 42)).message, HasSubstr("may not be traced"));
}

TEST(PerfEventRefusal, InAUserNamespaceOnlyTheHostHelps) {
  for (const OpenFailure& failure : {refusal(EACCES, 3), of_kernel(2), of_all(2), of_another_user(2)}) {
    const OpenFailure inside = in_user_namespace(failure);
    EXPECT_THAT(hint_of(inside), HasSubstr("as root outside of this user namespace"));
    EXPECT_THAT(hint_of(inside), Not(HasSubstr("setcap")));
    EXPECT_THAT(hint_for(inside).kubernetes, HasSubstr("hostUsers: true"));
  }
  EXPECT_THAT(explain(in_user_namespace(of_all(2))).message, HasSubstr("user namespace do not count"));
  EXPECT_THAT(explain(of_all(2)).message, Not(HasSubstr("namespace")));
  EXPECT_THAT(hint_of(in_user_namespace(of_all(2))), HasSubstr("perf_event_paranoid=0 on the host, or run"));
  EXPECT_THAT(hint_of(in_user_namespace(of_kernel(2))),
              HasSubstr("perf_event_paranoid=1 on the host, or run"));
}

TEST(PerfEventRefusal, RootWithoutTheCapabilityIsNotToldToBeRoot) {
  for (const OpenFailure& failure : {refusal(EACCES, 3), of_kernel(2), of_all(2), of_another_user(2)}) {
    const OpenFailure inside = in_container(failure);
    EXPECT_THAT(hint_of(inside), HasSubstr("start this container or service with CAP_PERFMON"));
    EXPECT_THAT(hint_of(inside), Not(HasSubstr("root")));
    EXPECT_THAT(hint_of(inside), Not(HasSubstr("setcap")));
  }
  OpenFailure service = of_all(2);
  service.own.has_no_new_privileges = true;
  EXPECT_THAT(hint_of(service),
              HasSubstr("perf_event_paranoid=0 on the host, or start this container or service"));
}

TEST(PerfEventRefusal, SaysOnWhatItWasTried) {
  EXPECT_THAT(explain(refusal(ENOENT, 2)).message, testing::StartsWith("perf_event_open sCPU: "));
  EXPECT_THAT(explain(refusal(ENOENT, 2, 1)).message,
              testing::StartsWith("perf_event_open sCPU on task 1: "));
  EXPECT_THAT(explain(refusal(ENOENT, 2, -1)).message,
              testing::StartsWith("perf_event_open sCPU on all processes: "));
}

TEST(PerfEventRefusal, WhereTheLevelIsEnoughAnotherCheckRefused) {
  EXPECT_EQ(obstacle_of(refusal(EACCES, 2)), PerfObstacle::security_policy);
  EXPECT_EQ(obstacle_of(of_all(0)), PerfObstacle::security_policy);
  EXPECT_EQ(obstacle_of(of_all(1)), PerfObstacle::level_own_only);
  EXPECT_EQ(obstacle_of(of_kernel(1)), PerfObstacle::security_policy);
  EXPECT_EQ(obstacle_of(of_kernel(2)), PerfObstacle::level_hides_kernel);
  EXPECT_EQ(obstacle_of(refusal(EACCES, 3)), PerfObstacle::level_forbids);
  EXPECT_EQ(obstacle_of(refusal(EACCES, 2, 1)), PerfObstacle::foreign_process);
}

TEST(PerfEventRefusal, AFilterIsBlamedWhateverTheLevelIs) {
  for (const int level : {0, 2, 4}) {
    for (const int error_number : {EPERM, EACCES, ENOSYS}) {
      OpenFailure failure = refusal(error_number, level);
      failure.is_refused_by_filter = true;
      EXPECT_THAT(explain(failure).message, HasSubstr("seccomp")) << level;
      EXPECT_THAT(explain(failure).message, Not(HasSubstr("paranoid"))) << level;
      failure.own.capabilities = bit(CAP_PERFMON);
      EXPECT_THAT(explain(failure).message, HasSubstr("seccomp")) << level;
    }
  }
}

TEST(PerfEventRefusal, BehindAFilterTheLevelMayBeInTheWayToo) {
  OpenFailure failure = of_all(2);
  failure.is_refused_by_filter = true;
  EXPECT_THAT(hint_of(failure),
              HasSubstr("without CAP_PERFMON also sudo sysctl kernel.perf_event_paranoid=0"));
  failure.own.capabilities = bit(CAP_PERFMON);
  EXPECT_THAT(hint_of(failure), Not(HasSubstr("sysctl")));
  OpenFailure own = refusal(EPERM, 2);
  own.is_refused_by_filter = true;
  EXPECT_THAT(hint_of(own), Not(HasSubstr("sysctl")));
}

TEST(PerfEventRefusal, AFilterThatLetsTheCallThroughIsNotBlamed) {
  OpenFailure failure = of_all(2);
  failure.own.is_seccomp_filtered = true;
  EXPECT_THAT(explain(failure).message, HasSubstr("perf_event_paranoid is 2"));
}

TEST(PerfEventRefusal, KnowsAKernelWithoutPerfEvents) {
  OpenFailure failure = refusal(ENOSYS, 0);
  failure.own.paranoid.reset();
  EXPECT_THAT(explain(failure).message, HasSubstr("without perf events"));
}

TEST(PerfEventRefusal, DoesNotGuessALevelThatItCannotRead) {
  OpenFailure failure = refusal(EACCES, 0);
  failure.own.paranoid.reset();
  EXPECT_THAT(explain(failure).message, HasSubstr("cannot be read"));
}

TEST(PerfEventRefusal, KnowsWhatAContainerNeeds) {
  const Hint hint = hint_for(of_another_user(2));
  EXPECT_EQ(hint.docker, "--cap-add PERFMON --cap-add SYS_PTRACE");
  EXPECT_EQ(hint.kubernetes, "securityContext.capabilities.add: [PERFMON, SYS_PTRACE]");
}

TEST(PerfEventRefusal, GivesEveryOtherReasonItsCode) {
  EXPECT_EQ(explain(refusal(ENOENT, 2)).code, ErrorCode::unsupported);
  EXPECT_EQ(explain(refusal(EOPNOTSUPP, 2)).code, ErrorCode::unsupported);
  EXPECT_EQ(explain(refusal(ESRCH, 2)).code, ErrorCode::not_found);
  EXPECT_EQ(explain(refusal(EMFILE, 2)).code, ErrorCode::exhausted);
  EXPECT_EQ(explain(refusal(E2BIG, 2)).code, ErrorCode::invalid_argument);
  EXPECT_EQ(explain(refusal(EIO, 2)).code, ErrorCode::failed);
  EXPECT_THAT(explain(refusal(ESRCH, 2, 42)).message, HasSubstr("42"));
}

TEST(KernelFrames, NeedWhatCanBeHadHere) {
  OwnPrivileges own;
  EXPECT_EQ(kernel_frames_need(own), "CAP_PERFMON or kernel.perf_event_paranoid <= 1");
  own.is_in_first_user_namespace = false;
  EXPECT_EQ(kernel_frames_need(own),
            "kernel.perf_event_paranoid <= 1 on the host, or root outside of this user namespace");
}

}  // namespace

}  // namespace ddprof
