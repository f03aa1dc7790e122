#include "collect/perf/perf_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "collect/machine_fixture.hpp"
#include "collect/perf/probe_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(CheckPerfEvents, SaysWhoRefuses) {
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_perf_events(probe).state, CheckState::ok);
  probe.own = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = user_at(2)});
  const Finding finding = check_perf_events(probe);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.fact, HasSubstr("seccomp"));
  EXPECT_EQ(finding.hint.docker, "--cap-add PERFMON");
}

TEST(CheckPerfEvents, HasTheWordsOfTheErrorThatARecordingWouldEndWith) {
  const OpenFailure failure{.error_number = EACCES, .what = "sCPU", .own = user_at(4)};
  PerfProbe probe = working_probe();
  probe.own = failure;
  const Finding finding = check_perf_events(probe);
  EXPECT_THAT(explain(failure).message, HasSubstr(finding.fact));
  EXPECT_EQ(explain(failure).hint, finding.hint.command);
}

TEST(CheckPerfEvents, ShowsAnUnforeseenErrorAsItIs) {
  PerfProbe probe = working_probe();
  probe.own = refused({.error_number = EIO});
  EXPECT_THAT(check_perf_events(probe).fact, HasSubstr("Input/output error"));
}

TEST(CheckParanoid, SaysWhatEachLevelLeavesToAnOrdinaryUser) {
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_paranoid(user_at(-1), probe).state, CheckState::ok);
  EXPECT_EQ(check_paranoid(user_at(0), probe).state, CheckState::ok);
  EXPECT_EQ(check_paranoid(user_at(1), probe).state, CheckState::limited);
  EXPECT_THAT(check_paranoid(user_at(1), probe).hint.command, HasSubstr("perf_event_paranoid=0"));
  EXPECT_THAT(check_paranoid(user_at(2), probe).meaning, HasSubstr("without the kernel"));
  EXPECT_THAT(check_paranoid(user_at(2), probe).hint.command, HasSubstr("perf_event_paranoid=1"));
  // The kernel of kernel.org takes 3 for 2.
  EXPECT_EQ(check_paranoid(user_at(3), probe).state, CheckState::limited);
  probe.own = refused({.error_number = EACCES, .own = user_at(3)});
  EXPECT_EQ(check_paranoid(user_at(3), probe).state, CheckState::missing);
  EXPECT_THAT(check_paranoid(user_at(3), probe).hint.command, HasSubstr("perf_event_paranoid=2"));
}

TEST(CheckParanoid, IsNotBlamedForWhatAFilterRefuses) {
  PerfProbe probe = working_probe();
  for (const int level : {1, 2, 3}) {
    probe.own = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = user_at(level)});
    const Finding finding = check_paranoid(user_at(level), probe);
    EXPECT_EQ(finding.state, CheckState::limited);
    EXPECT_THAT(finding.meaning, HasSubstr("seccomp"));
    EXPECT_THAT(finding.hint.command, IsEmpty());
  }
}

TEST(CheckParanoid, DoesNotBindWhoHasTheCapability) {
  const PerfProbe probe = working_probe();
  EXPECT_EQ(check_paranoid(user_at(4, {CAP_PERFMON}), probe).state, CheckState::ok);
  EXPECT_EQ(check_paranoid(OwnPrivileges{}, probe).state, CheckState::limited);
}

TEST(CheckKernelFrames, AndAllProcessesEachHaveTheirOwnCure) {
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_kernel_frames(probe).state, CheckState::ok);
  EXPECT_EQ(check_all_processes(probe).state, CheckState::ok);
  probe.own_kernel = refused({.error_number = EACCES, .wants_kernel = true, .own = user_at(2)});
  probe.all = refused({.error_number = EACCES, .task = -1, .own = user_at(2)});
  EXPECT_THAT(check_kernel_frames(probe).hint.command, HasSubstr("perf_event_paranoid=1"));
  EXPECT_THAT(check_all_processes(probe).hint.command, HasSubstr("perf_event_paranoid=0"));
}

TEST(CheckHardware, TellsAVirtualMachineFromAMissingDriver) {
  RecordedMachine recorded;
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_hardware(recorded.machine(), probe).state, CheckState::ok);
  probe.cycles = refused({.error_number = ENOENT, .own = user_at(2)});
  recorded.file("/proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n");
  EXPECT_THAT(check_hardware(recorded.machine(), probe).fact, HasSubstr("virtual machine"));
  recorded.file("/proc/cpuinfo", "flags\t\t: fpu vme lahf_lm\n");
  EXPECT_THAT(check_hardware(recorded.machine(), probe).hint.command, HasSubstr("driver"));
  probe.cycles = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = user_at(2)});
  EXPECT_THAT(check_hardware(recorded.machine(), probe).fact, HasSubstr("seccomp"));
}

TEST(CheckLockedMemory, ComparesWhatIsWantedWithWhatIsHad) {
  RecordedMachine recorded;
  recorded.file("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
  PerfProbe probe = working_probe();
  const Finding full = check_locked_memory(recorded.machine(), probe, RLIM_INFINITY);
  EXPECT_EQ(full.state, CheckState::ok);
  EXPECT_THAT(full.fact, HasSubstr("unlimited"));
  EXPECT_THAT(full.hint.command, IsEmpty());
  probe.ring_bytes = 512 << 10;
  const Finding small = check_locked_memory(recorded.machine(), probe, 64 << 10);
  EXPECT_EQ(small.state, CheckState::limited);
  EXPECT_THAT(small.meaning, HasSubstr("512 KiB per CPU instead of 4096 KiB"));
  EXPECT_THAT(small.hint.command, HasSubstr("sudo sysctl kernel.perf_event_mlock_kb=4608"));
  probe.ring_bytes = 0;
  probe.ring_problem = "mmap: Operation not permitted";
  EXPECT_EQ(check_locked_memory(recorded.machine(), probe, 0).state, CheckState::missing);
}

TEST(ProbePerf, FindsOutSomethingOnThisMachine) {
  const PerfProbe probe = probe_perf();
  EXPECT_GT(probe.cpus, 0U);
  EXPECT_GT(probe.wanted_ring_bytes, 0U);
  EXPECT_LE(probe.ring_bytes, probe.wanted_ring_bytes);
  // Rings belong to events: a filter that refuses these leaves none.
  if (probe.own) {
    EXPECT_EQ(probe.ring_bytes, 0U);
  }
}

TEST(CheckCapabilities, NamesTheCommandThatGivesWhatIsLacking) {
  OwnPrivileges ordinary = user_at(2);
  ordinary.executable = "/usr/bin/ddprof";
  const Finding none = check_capabilities(ordinary);
  EXPECT_EQ(none.state, CheckState::missing);
  EXPECT_EQ(none.fact, "none");
  EXPECT_EQ(
      none.hint.command,
      "sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_ipc_lock,cap_syslog,cap_checkpoint_restore+ep "
      "/usr/bin/ddprof");
  const Finding some = check_capabilities(user_at(2, {CAP_PERFMON, CAP_IPC_LOCK, CAP_SYSLOG}));
  EXPECT_EQ(some.state, CheckState::limited);
  EXPECT_EQ(some.fact, "PERFMON, IPC_LOCK, SYSLOG");
  EXPECT_EQ(some.hint.docker, "--cap-add BPF --cap-add SYS_PTRACE --cap-add CHECKPOINT_RESTORE");
}

TEST(CheckCapabilities, OfAContainerAreThoseThatItWasStartedWith) {
  OwnPrivileges container = user_at(2);
  container.bounding = std::uint64_t{1} << CAP_SYS_PTRACE;
  const Finding finding = check_capabilities(container);
  EXPECT_THAT(finding.hint.command,
              HasSubstr("start this container or service with CAP_PERFMON and CAP_BPF"));
  EXPECT_THAT(finding.hint.command, Not(HasSubstr("setcap")));
}

TEST(CheckCapabilities, SysAdminIncludesOthers) {
  const Finding finding =
      check_capabilities(user_at(2, {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_IPC_LOCK, CAP_SYSLOG}));
  EXPECT_EQ(finding.state, CheckState::ok);
  EXPECT_THAT(finding.hint.command, IsEmpty());
}

TEST(CheckCapabilities, OfAUserNamespaceAreWorthNothing) {
  OwnPrivileges rootless = user_at(2, {CAP_SYS_ADMIN, CAP_PERFMON});
  rootless.is_in_first_user_namespace = false;
  const Finding finding = check_capabilities(rootless);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.fact, HasSubstr("user namespace"));
  EXPECT_THAT(finding.hint.command, HasSubstr("outside of this user namespace"));
  EXPECT_THAT(finding.hint.kubernetes, HasSubstr("hostUsers: true"));
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
  EXPECT_THAT(refusing.hint.docker, HasSubstr("--security-opt seccomp="));
  EXPECT_THAT(refusing.hint.kubernetes, HasSubstr("seccompProfile"));
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
  EXPECT_THAT(at("1", user_at(2)).hint.command, HasSubstr("sudo sysctl kernel.yama.ptrace_scope=0"));
  EXPECT_THAT(at("1", user_at(2)).meaning, HasSubstr("only children"));
  EXPECT_EQ(at("2", user_at(2)).state, CheckState::missing);
  EXPECT_THAT(at("2", user_at(2)).hint.docker, HasSubstr("SYS_PTRACE"));
  EXPECT_EQ(at("2", tracer).state, CheckState::ok);
  EXPECT_EQ(at("3", tracer).state, CheckState::missing);
}

TEST(CheckPtrace, WorksWithoutYama) {
  const RecordedMachine recorded;
  EXPECT_EQ(check_ptrace(recorded.machine(), user_at(2, {CAP_SYS_PTRACE})).state, CheckState::ok);
  const Finding finding = check_ptrace(recorded.machine(), user_at(2));
  EXPECT_EQ(finding.fact, "no Yama");
  EXPECT_THAT(finding.hint.command, Not(HasSubstr("yama")));
}

}  // namespace
}  // namespace ddprof
