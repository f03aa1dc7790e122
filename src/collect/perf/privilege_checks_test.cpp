#include "collect/perf/privilege_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "collect/machine_fixture.hpp"
#include "collect/perf/probe_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(CheckCapabilities, NamesTheCommandThatGivesWhatIsLacking) {
  OwnPrivileges ordinary = user_at(2);
  ordinary.executable = "/usr/bin/ddprof";
  const Finding none = check_capabilities(ordinary);
  EXPECT_EQ(none.state, CheckState::missing);
  EXPECT_EQ(none.fact, "none");
  EXPECT_EQ(
      none.cure.command,
      "sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_ipc_lock,cap_syslog,cap_checkpoint_restore+ep "
      "/usr/bin/ddprof");
  const Finding some = check_capabilities(user_at(2, {CAP_PERFMON, CAP_IPC_LOCK, CAP_SYSLOG}));
  EXPECT_EQ(some.state, CheckState::limited);
  EXPECT_EQ(some.fact, "PERFMON, IPC_LOCK, SYSLOG");
  EXPECT_EQ(some.cure.docker, "--cap-add BPF --cap-add SYS_PTRACE --cap-add CHECKPOINT_RESTORE");
}

TEST(CheckCapabilities, OfAContainerAreThoseThatItWasStartedWith) {
  OwnPrivileges container = user_at(2);
  container.bounding = std::uint64_t{1} << CAP_SYS_PTRACE;
  const Finding finding = check_capabilities(container);
  EXPECT_THAT(finding.cure.command,
              HasSubstr("start this container or service with CAP_PERFMON and CAP_BPF"));
  EXPECT_THAT(finding.cure.command, Not(HasSubstr("setcap")));
}

TEST(CheckCapabilities, SysAdminIncludesOthers) {
  const Finding finding =
      check_capabilities(user_at(2, {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_IPC_LOCK, CAP_SYSLOG}));
  EXPECT_EQ(finding.state, CheckState::ok);
  EXPECT_THAT(finding.cure.command, IsEmpty());
}

TEST(CheckCapabilities, OfAUserNamespaceAreWorthNothing) {
  OwnPrivileges rootless = user_at(2, {CAP_SYS_ADMIN, CAP_PERFMON});
  rootless.is_in_first_user_namespace = false;
  const Finding finding = check_capabilities(rootless);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.fact, HasSubstr("user namespace"));
  EXPECT_THAT(finding.cure.command, HasSubstr("outside of this user namespace"));
  EXPECT_THAT(finding.cure.kubernetes, HasSubstr("hostUsers: true"));
}

TEST(CheckSeccomp, BlamesAFilterOnlyForWhatItDoes) {
  OwnPrivileges privileges = user_at(2);
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_seccomp(privileges, probe).state, CheckState::ok);
  privileges.is_seccomp_filtered = true;
  EXPECT_EQ(check_seccomp(privileges, probe).state, CheckState::ok);
  EXPECT_THAT(check_seccomp(privileges, probe).meaning, HasSubstr("through"));
  probe.own = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = user_at(2)});
  const Finding refusing = check_seccomp(privileges, probe);
  EXPECT_EQ(refusing.state, CheckState::missing);
  EXPECT_THAT(refusing.cure.docker, HasSubstr("--security-opt seccomp="));
  EXPECT_THAT(refusing.cure.kubernetes, HasSubstr("seccompProfile"));
  probe.own = refused({.error_number = EACCES, .own = user_at(4)});
  EXPECT_EQ(check_seccomp(privileges, probe).state, CheckState::limited);
}

TEST(CheckPtrace, SaysWhoseMemoryCanBeReadAtEachScope) {
  RecordedMachine recorded;
  const auto at = [&](std::string_view scope, const OwnPrivileges& privileges) {
    return check_ptrace(recorded.file("/proc/sys/kernel/yama/ptrace_scope", scope).machine(), privileges);
  };
  const OwnPrivileges tracer = user_at(2, {CAP_SYS_PTRACE});
  EXPECT_EQ(at("0", user_at(2)).state, CheckState::limited);
  EXPECT_THAT(at("1", user_at(2)).cure.command, HasSubstr("sudo sysctl kernel.yama.ptrace_scope=0"));
  EXPECT_THAT(at("1", user_at(2)).meaning, HasSubstr("only children"));
  EXPECT_EQ(at("2", user_at(2)).state, CheckState::missing);
  EXPECT_THAT(at("2", user_at(2)).cure.docker, HasSubstr("SYS_PTRACE"));
  EXPECT_EQ(at("2", tracer).state, CheckState::ok);
  EXPECT_EQ(at("3", tracer).state, CheckState::missing);
}

TEST(CheckPtrace, WorksWithoutYama) {
  const RecordedMachine recorded;
  EXPECT_EQ(check_ptrace(recorded.machine(), user_at(2, {CAP_SYS_PTRACE})).state, CheckState::ok);
  const Finding finding = check_ptrace(recorded.machine(), user_at(2));
  EXPECT_EQ(finding.fact, "no Yama");
  EXPECT_THAT(finding.cure.command, Not(HasSubstr("yama")));
}

}  // namespace
}  // namespace ddprof
