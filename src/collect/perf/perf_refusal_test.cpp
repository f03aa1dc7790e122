#include "collect/perf/perf_refusal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace ddprof {
namespace {

using testing::HasSubstr;
using testing::Not;

OpenFailure refusal(int error_number, int paranoid) {
  return {.error_number = error_number, .what = "sCPU", .task = 42, .paranoid = paranoid};
}

TEST(PerfEventRefusal, NamesTheParanoidLevelAndItsCure) {
  Error error = explain(refusal(EACCES, 3));
  EXPECT_EQ(error.code, ErrorCode::permission_denied);
  EXPECT_THAT(error.message, HasSubstr("perf_event_paranoid is 3"));
  EXPECT_THAT(error.hint, HasSubstr("sysctl kernel.perf_event_paranoid=2"));
}

TEST(PerfEventRefusal, TellsASeccompFilterFromTheSysctl) {
  OpenFailure failure = refusal(EPERM, 2);
  failure.is_seccomp_filtered = true;
  EXPECT_THAT(explain(failure).message, HasSubstr("seccomp"));
  failure.paranoid = 4;
  EXPECT_THAT(explain(failure).message, HasSubstr("perf_event_paranoid is 4"));
  // With the capability the sysctl does not matter, so that it must have been the filter.
  failure.is_privileged = true;
  EXPECT_THAT(explain(failure).message, HasSubstr("seccomp"));
}

TEST(PerfEventRefusal, TellsAForeignProcess) {
  EXPECT_THAT(explain(refusal(EACCES, 2)).message, HasSubstr("another user"));
}

TEST(PerfEventRefusal, AsksForMoreToSeeAllProcessesOrTheKernel) {
  OpenFailure all = refusal(EACCES, 2);
  all.task = -1;
  EXPECT_THAT(explain(all).hint, HasSubstr("perf_event_paranoid=0"));
  OpenFailure kernel = refusal(EACCES, 2);
  kernel.wants_kernel = true;
  EXPECT_THAT(explain(kernel).hint, HasSubstr("perf_event_paranoid=1"));
}

TEST(PerfEventRefusal, KnowsAKernelWithoutPerfEvents) {
  OpenFailure failure = refusal(ENOSYS, 0);
  failure.paranoid.reset();
  EXPECT_THAT(explain(failure).message, HasSubstr("without perf events"));
}

TEST(PerfEventRefusal, DoesNotGuessALevelThatItCannotRead) {
  OpenFailure failure = refusal(EACCES, 0);
  failure.paranoid.reset();
  EXPECT_THAT(explain(failure).message, HasSubstr("cannot be read"));
  failure.error_number = EPERM;
  failure.is_seccomp_filtered = true;
  EXPECT_THAT(explain(failure).message, HasSubstr("seccomp"));
}

TEST(PerfEventRefusal, SaysThatCapabilitiesOfAUserNamespaceDoNotCount) {
  OpenFailure failure = refusal(EACCES, 3);
  EXPECT_THAT(explain(failure).message, Not(HasSubstr("namespace")));
  failure.has_vain_capability = true;
  EXPECT_THAT(explain(failure).message, HasSubstr("user namespace do not count"));
}

TEST(PerfEventRefusal, KnowsWhatAContainerNeeds) {
  const Cure cure = cure_of(PerfObstacle::foreign_process);
  EXPECT_EQ(cure.docker, "--cap-add PERFMON --cap-add SYS_PTRACE");
  EXPECT_EQ(cure.kubernetes, "securityContext.capabilities.add: [PERFMON, SYS_PTRACE]");
}

TEST(PerfEventRefusal, GivesEveryOtherReasonItsCode) {
  EXPECT_EQ(explain(refusal(ENOENT, 2)).code, ErrorCode::unsupported);
  EXPECT_EQ(explain(refusal(EOPNOTSUPP, 2)).code, ErrorCode::unsupported);
  EXPECT_EQ(explain(refusal(ESRCH, 2)).code, ErrorCode::not_found);
  EXPECT_EQ(explain(refusal(EMFILE, 2)).code, ErrorCode::exhausted);
  EXPECT_EQ(explain(refusal(E2BIG, 2)).code, ErrorCode::invalid_argument);
  EXPECT_EQ(explain(refusal(EIO, 2)).code, ErrorCode::failed);
  EXPECT_THAT(explain(refusal(ESRCH, 2)).message, HasSubstr("42"));
}

}  // namespace
}  // namespace ddprof
