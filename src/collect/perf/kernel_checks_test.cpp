#include "collect/perf/perf_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/machine_fixture.hpp"
#include "collect/perf/probe_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Finding kernel_of(std::string_view release) {
  RecordedMachine recorded;
  recorded.file("/proc/sys/kernel/osrelease", release);
  return check_kernel(recorded.machine());
}

TEST(CheckKernel, KnowsWhatEachVersionLacks) {
  EXPECT_EQ(kernel_of("6.18.44-fc-v445\n").state, CheckState::ok);
  EXPECT_EQ(kernel_of("5.8.0\n").state, CheckState::ok);
  const Finding old = kernel_of("5.4.0-150-generic\n");
  EXPECT_EQ(old.state, CheckState::limited);
  EXPECT_THAT(old.meaning, HasSubstr("CAP_SYS_ADMIN"));
  EXPECT_EQ(old.hint.docker, "--cap-add SYS_ADMIN");
  EXPECT_EQ(kernel_of("3.10.0-1160.el7.x86_64\n").state, CheckState::missing);
}

TEST(CheckKernel, SaysWhenProcIsHidden) {
  const Finding finding = check_kernel(RecordedMachine().machine());
  EXPECT_EQ(finding.state, CheckState::limited);
  EXPECT_THAT(finding.hint.command, HasSubstr("mount -t proc"));
}

TEST(CheckClock, KnowsTheSlowOnes) {
  constexpr std::string_view kPath = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  RecordedMachine recorded;
  EXPECT_EQ(check_clock(recorded.file(kPath, "tsc\n").machine()).state, CheckState::ok);
  EXPECT_EQ(check_clock(recorded.file(kPath, "kvm-clock\n").machine()).state, CheckState::ok);
  const Finding slow = check_clock(recorded.file(kPath, "hpet\n").machine());
  EXPECT_EQ(slow.state, CheckState::limited);
  EXPECT_THAT(slow.fact, HasSubstr("hpet"));
}

TEST(CheckSampleRate, IsLimitedWhereTheKernelHasLoweredIt) {
  constexpr std::string_view kPath = "/proc/sys/kernel/perf_event_max_sample_rate";
  RecordedMachine recorded;
  EXPECT_EQ(check_sample_rate(recorded.file(kPath, "100000\n").machine()).state, CheckState::ok);
  const Finding low = check_sample_rate(recorded.file(kPath, "250\n").machine());
  EXPECT_EQ(low.state, CheckState::limited);
  EXPECT_THAT(low.hint.command, HasSubstr("sudo sysctl kernel.perf_event_max_sample_rate="));
}

TEST(CheckKernelNames, LooksAtTheAddressesThemselves) {
  RecordedMachine recorded;
  recorded.file("/proc/sys/kernel/kptr_restrict", "0\n");
  recorded.file("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff81000100 T start\n");
  EXPECT_EQ(check_kernel_names(recorded.machine(), user_at(2)).state, CheckState::ok);
  recorded.file("/proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T start\n");
  EXPECT_EQ(check_kernel_names(recorded.machine(), user_at(2)).state, CheckState::missing);
}

// kallsyms_show_value() in kernel/ksyms_common.c.
TEST(CheckKernelNames, KnowsWhatShowsThemAtEachLevel) {
  RecordedMachine recorded;
  const auto hint_at = [&](std::string_view restriction, int paranoid) {
    recorded.file("/proc/sys/kernel/kptr_restrict", restriction);
    return check_kernel_names(recorded.machine(), user_at(paranoid)).hint.command;
  };
  EXPECT_THAT(hint_at("0", 2), HasSubstr("perf_event_paranoid=1"));
  EXPECT_THAT(hint_at("0", 2), ::testing::Not(HasSubstr("kptr_restrict"))) << "it is 0 already";
  EXPECT_THAT(hint_at("1", 2), HasSubstr("kptr_restrict=0 kernel.perf_event_paranoid=1, or sudo setcap"));
  EXPECT_THAT(hint_at("1", 1), HasSubstr("kptr_restrict=0, or sudo setcap cap_syslog+ep ddprof"));
  EXPECT_EQ(hint_at("2", 2), "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1");
}

TEST(CheckTracefs, TellsAbsentFromUnmountedFromThere) {
  RecordedMachine recorded;
  recorded.file("/proc/filesystems", "nodev\ttracefs\n");
  const Finding unmounted = check_tracefs(recorded.machine());
  EXPECT_EQ(unmounted.state, CheckState::missing);
  EXPECT_THAT(unmounted.fact, HasSubstr("not mounted"));
  EXPECT_THAT(unmounted.hint.command, HasSubstr("mount -t tracefs"));
  recorded.file("/proc/filesystems", "nodev\tproc\n");
  EXPECT_THAT(check_tracefs(recorded.machine()).hint.command, HasSubstr("CONFIG_FTRACE"));
  recorded.file("/sys/kernel/debug/tracing/events/sched/sched_switch/id", "314\n");
  EXPECT_EQ(check_tracefs(recorded.machine()).state, CheckState::ok);
}

TEST(CheckBpf, IsHonestThatNothingUsesItYet) {
  RecordedMachine recorded;
  EXPECT_EQ(check_btf(recorded.machine()).state, CheckState::missing);
  recorded.file("/sys/kernel/btf/vmlinux", "");
  EXPECT_EQ(check_btf(recorded.machine()).state, CheckState::ok);
  recorded.file("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
  const Finding refused =
      check_bpf(recorded.machine(), user_at(2), Error{ErrorCode::permission_denied, "bpf: make a map: no"});
  EXPECT_EQ(refused.state, CheckState::missing);
  EXPECT_THAT(refused.fact, HasSubstr("bpf: make a map: no"));
  EXPECT_THAT(refused.hint.command, HasSubstr("setcap cap_bpf,cap_perfmon+ep"));
  EXPECT_THAT(check_bpf(recorded.machine(), user_at(2), Error{ErrorCode::unsupported, "no"}).hint.command,
              IsEmpty());
  EXPECT_EQ(check_bpf(recorded.machine(), user_at(2), std::nullopt).state, CheckState::ok);
}

}  // namespace
}  // namespace ddprof
