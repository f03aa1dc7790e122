#include "collect/perf/perf_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "collect/machine_fixture.hpp"
#include "collect/perf/probe_fixture.hpp"

namespace ddprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kOk = CheckState::ok;
constexpr auto kLimited = CheckState::limited;
constexpr auto kMissing = CheckState::missing;

class Abilities : public testing::Test {
 protected:
  Abilities() { recorded_.file("/proc/kallsyms", "ffffffff81000000 T _text\nffffffff81000100 T start\n"); }
  // Own programs, other users, whole machine, kernel.
  [[nodiscard]] std::vector<CheckState> states(const OwnPrivileges& privileges) const {
    std::vector<CheckState> states;
    for (const Ability& ability : abilities_of(recorded_.machine(), privileges, probe_))
      states.push_back(ability.state);
    return states;
  }

  RecordedMachine recorded_;
  PerfProbe probe_ = working_probe();
  OwnPrivileges root_ = user_at(2, {CAP_SYS_ADMIN, CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG});
};

TEST_F(Abilities, RootMayEverything) {
  EXPECT_THAT(states(root_), ElementsAre(kOk, kOk, kOk, kOk));
  probe_.foreign.reset();  // no other user is there
  EXPECT_THAT(states(root_), ElementsAre(kOk, kOk, kOk, kOk));
}

TEST_F(Abilities, AnOrdinaryUserMayProfileOwnPrograms) {
  probe_.own_kernel = refused({.error_number = EACCES, .wants_kernel = true, .own = user_at(2)});
  probe_.all = refused({.error_number = EACCES, .task = -1, .own = user_at(2)});
  probe_.foreign->events = refused({.error_number = EACCES, .task = 1, .own = user_at(2)});
  EXPECT_THAT(states(user_at(2)), ElementsAre(kOk, kMissing, kMissing, kMissing));
  const auto abilities = abilities_of(recorded_.machine(), user_at(2), probe_);
  EXPECT_THAT(abilities[1].hint.command, HasSubstr("cap_sys_ptrace"));
  EXPECT_THAT(abilities[2].hint.command, HasSubstr("perf_event_paranoid=0"));
  EXPECT_THAT(abilities[3].meaning, HasSubstr("hides the kernel"));
  probe_.foreign.reset();
  EXPECT_EQ(states(user_at(2))[1], kMissing);
}

TEST_F(Abilities, RootOfAUserNamespaceIsNotToldToBeRoot) {
  OwnPrivileges rootless = root_;
  rootless.is_in_first_user_namespace = false;
  rootless.is_root = true;
  probe_.own_kernel = refused({.error_number = EACCES, .wants_kernel = true, .own = rootless});
  probe_.all = refused({.error_number = EACCES, .task = -1, .own = rootless});
  probe_.foreign.reset();
  const auto abilities = abilities_of(recorded_.machine(), rootless, probe_);
  for (std::size_t i = 1; i < abilities.size(); ++i) {
    EXPECT_EQ(abilities[i].state, kMissing);
    EXPECT_THAT(abilities[i].hint.command, HasSubstr("outside of this user namespace"));
    EXPECT_THAT(abilities[i].hint.command, testing::Not(HasSubstr("setcap")));
  }
  EXPECT_THAT(abilities[2].hint.command, HasSubstr("perf_event_paranoid=0 on the host"));
}

TEST_F(Abilities, FilesOfOthersNeedMoreThanTheirEvents) {
  const OwnPrivileges monitor = user_at(2, {CAP_PERFMON});
  EXPECT_THAT(states(monitor), ElementsAre(kOk, kLimited, kLimited, kOk));
  EXPECT_THAT(abilities_of(recorded_.machine(), monitor, probe_)[1].meaning, HasSubstr("private folders"));
  probe_.foreign->is_readable = false;
  EXPECT_THAT(abilities_of(recorded_.machine(), monitor, probe_)[1].meaning, HasSubstr("loaded before"));
}

TEST_F(Abilities, AFilterThatRefusesEventsLeavesNothing) {
  const OpenFailure filter = refused({.error_number = EPERM, .is_refused_by_filter = true, .own = root_});
  probe_.own = probe_.own_kernel = probe_.all = filter;
  probe_.foreign->events = filter;
  probe_.ring_bytes = 0;
  EXPECT_FALSE(probe_.can_profile());
  EXPECT_THAT(states(root_), ElementsAre(kMissing, kMissing, kMissing, kMissing));
  EXPECT_THAT(abilities_of(recorded_.machine(), root_, probe_)[1].meaning, HasSubstr("seccomp"));
}

TEST_F(Abilities, WithoutRingsNothingWorksEither) {
  probe_.ring_bytes = 0;
  probe_.ring_problem = "mmap: Operation not permitted";
  EXPECT_FALSE(probe_.can_profile());
  EXPECT_THAT(states(root_), ElementsAre(kMissing, kMissing, kMissing, kMissing));
  EXPECT_THAT(abilities_of(recorded_.machine(), root_, probe_)[0].hint.command, HasSubstr("mlock_kb"));
}

TEST_F(Abilities, KernelFramesMayLackNames) {
  recorded_.file("/proc/kallsyms", "0000000000000000 T _text\n");
  EXPECT_THAT(states(root_), ElementsAre(kOk, kOk, kOk, kLimited));
}

}  // namespace
}  // namespace ddprof
