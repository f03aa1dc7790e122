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

TEST(CheckPerfEvents, SaysWhoRefuses) {
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_perf_events(probe).state, CheckState::ok);
  probe.own = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = user_at(2)});
  const Finding finding = check_perf_events(probe);
  EXPECT_EQ(finding.state, CheckState::missing);
  EXPECT_THAT(finding.fact, HasSubstr("seccomp"));
  EXPECT_EQ(finding.cure.docker, "--cap-add PERFMON");
}

TEST(CheckPerfEvents, HasTheWordsOfTheErrorThatARecordingWouldEndWith) {
  const OpenFailure failure{.error_number = EACCES, .what = "sCPU", .own = user_at(4)};
  PerfProbe probe = working_probe();
  probe.own = failure;
  const Finding finding = check_perf_events(probe);
  EXPECT_THAT(explain(failure).message, HasSubstr(finding.fact));
  EXPECT_EQ(explain(failure).hint, finding.cure.command);
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
  EXPECT_THAT(check_paranoid(user_at(1), probe).cure.command, HasSubstr("perf_event_paranoid=0"));
  EXPECT_THAT(check_paranoid(user_at(2), probe).meaning, HasSubstr("without the kernel"));
  EXPECT_THAT(check_paranoid(user_at(2), probe).cure.command, HasSubstr("perf_event_paranoid=1"));
  // The kernel of kernel.org takes 3 for 2.
  EXPECT_EQ(check_paranoid(user_at(3), probe).state, CheckState::limited);
  probe.own = refused({.error_number = EACCES, .own = user_at(3)});
  EXPECT_EQ(check_paranoid(user_at(3), probe).state, CheckState::missing);
  EXPECT_THAT(check_paranoid(user_at(3), probe).cure.command, HasSubstr("perf_event_paranoid=2"));
}

TEST(CheckParanoid, IsNotBlamedForWhatAFilterRefuses) {
  PerfProbe probe = working_probe();
  for (const int level : {1, 2, 3}) {
    probe.own = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = user_at(level)});
    const Finding finding = check_paranoid(user_at(level), probe);
    EXPECT_EQ(finding.state, CheckState::limited);
    EXPECT_THAT(finding.meaning, HasSubstr("seccomp"));
    EXPECT_THAT(finding.cure.command, IsEmpty());
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
  EXPECT_THAT(check_kernel_frames(probe).cure.command, HasSubstr("perf_event_paranoid=1"));
  EXPECT_THAT(check_all_processes(probe).cure.command, HasSubstr("perf_event_paranoid=0"));
}

TEST(CheckHardware, TellsAVirtualMachineFromAMissingDriver) {
  RecordedMachine recorded;
  PerfProbe probe = working_probe();
  EXPECT_EQ(check_hardware(recorded.machine(), probe).state, CheckState::ok);
  probe.cycles = refused({.error_number = ENOENT, .own = user_at(2)});
  recorded.file("/proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n");
  EXPECT_THAT(check_hardware(recorded.machine(), probe).fact, HasSubstr("virtual machine"));
  recorded.file("/proc/cpuinfo", "flags\t\t: fpu vme lahf_lm\n");
  EXPECT_THAT(check_hardware(recorded.machine(), probe).cure.command, HasSubstr("driver"));
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
  EXPECT_THAT(full.cure.command, IsEmpty());
  probe.ring_bytes = 512 << 10;
  const Finding small = check_locked_memory(recorded.machine(), probe, 64 << 10);
  EXPECT_EQ(small.state, CheckState::limited);
  EXPECT_THAT(small.meaning, HasSubstr("512 KiB per CPU instead of 4096 KiB"));
  EXPECT_THAT(small.cure.command, HasSubstr("sudo sysctl kernel.perf_event_mlock_kb=4608"));
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

}  // namespace
}  // namespace ddprof
