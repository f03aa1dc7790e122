// Our unwinder against two others, over the stack of this very process: glibc's backtrace() and libdw.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>
#include <optional>
#include <thread>

#include "unwind/unwinder_nest.hpp"
#include "unwind/unwinder_self_capture.hpp"

namespace ddprof {
namespace {

class UnwinderOracle : public testing::Test {
 protected:
  UnwinderOracle() : unwinder_(modules_.rules, Architecture::x86_64) {}

  std::vector<std::uint64_t> unwind(const SelfCapture& captured) {
    unwinder_.unwind(captured.registers, captured.copy(), modules_.map, nullptr, nullptr, stack_);
    return runtime_addresses(stack_, modules_.map);
  }

  // backtrace() gives return addresses as they are; ours point into the call, but not where a signal
  // interrupted.
  static void expect_same(const std::vector<std::uint64_t>& ours, const SelfCapture& captured) {
    // A sanitizer wraps backtrace(), which then begins with one frame more.
    const std::size_t wrapper = static_cast<std::size_t>(captured.backtrace_size) - ours.size();
    ASSERT_LE(wrapper, 1U);
    for (std::size_t i = 1; i < ours.size(); ++i) {
      const auto theirs = reinterpret_cast<std::uint64_t>(captured.backtrace[i + wrapper]);
      EXPECT_TRUE(theirs == ours[i] + 1 || theirs == ours[i]) << "frame " << i;
    }
  }

  SelfModules modules_;
  Unwinder unwinder_;
  Stack stack_;
};

TEST_F(UnwinderOracle, AgreesFrameByFrameInANestOfEveryKindOfCall) {
  for (const int depth : {0, 3, 60}) {
    SelfCapture captured;
    nest::run(depth, [&] { capture(captured); });
    const auto ours = unwind(captured);
    EXPECT_EQ(stack_.reason, StopReason::complete);
    EXPECT_GT(ours.size(), 20U + static_cast<std::size_t>(depth));
    expect_same(ours, captured);
    DwflOracle oracle;
    EXPECT_EQ(ours, oracle.unwind(captured));
  }
}

TEST_F(UnwinderOracle, ReachesTheRootOfAThread) {
  SelfCapture captured;
  std::thread([&] { nest::run(2, [&] { capture(captured); }); }).join();
  const auto ours = unwind(captured);
  EXPECT_EQ(stack_.reason, StopReason::complete);
  expect_same(ours, captured);
  DwflOracle oracle;
  EXPECT_EQ(ours, oracle.unwind(captured));
}

SelfCapture* signal_capture = nullptr;

TEST_F(UnwinderOracle, GoesOnThroughASignalHandler) {
  SelfCapture captured;
  signal_capture = &captured;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { capture(*signal_capture); };
  sigaction(SIGALRM, &action, &before);
  nest::run(2, [] { raise(SIGALRM); });
  sigaction(SIGALRM, &before, nullptr);

  const auto ours = unwind(captured);
  EXPECT_EQ(stack_.reason, StopReason::complete);
  expect_same(ours,
              captured);  // glibc's unwinder knows signal frames; libdw loses 3 % of them and is not asked
}

std::atomic<bool> is_in_vdso{false};
std::uint64_t vdso_start = 0;

void capture_in_vdso(int, siginfo_t*, void* context) {
  const Registers registers = registers_of(*static_cast<const ucontext_t*>(context));
  if (is_in_vdso || registers.pc - vdso_start >= 0x4000) return;
  capture(*signal_capture);
  is_in_vdso = true;
}

__attribute__((noinline)) void read_clock_until_caught() {
  timespec now{};
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (!is_in_vdso && now.tv_sec - start.tv_sec < 20);
}

TEST_F(UnwinderOracle, LeavesTheVdso) {
  vdso_start = getauxval(AT_SYSINFO_EHDR);
  if (vdso_start == 0) GTEST_SKIP() << "this process has no vdso";
  SelfCapture captured;
  captured.stack.reserve(1 << 20);  // the handler must not allocate
  signal_capture = &captured;
  void* warm_up[1];
  backtrace(warm_up, 1);
  struct sigaction action {};
  struct sigaction before {};
  action.sa_sigaction = &capture_in_vdso;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, &before);
  const itimerval fast{{0, 500}, {0, 500}};
  const itimerval off{};
  setitimer(ITIMER_PROF, &fast, nullptr);
  read_clock_until_caught();
  setitimer(ITIMER_PROF, &off, nullptr);
  sigaction(SIGPROF, &before, nullptr);
  ASSERT_TRUE(is_in_vdso) << "20 s of clock_gettime were never interrupted inside of the vdso";

  const auto ours = unwind(captured);
  EXPECT_EQ(stack_.reason, StopReason::complete);
  expect_same(ours, captured);
}

TEST_F(UnwinderOracle, AllocatesNothingOnceItsBuffersHaveGrown) {
  SelfCapture captured;
  nest::run(10, [&] { capture(captured); });
  unwind(captured);
  const Frame* before = stack_.frames.data();
  const auto capacity = stack_.frames.capacity();
  unwinder_.unwind(captured.registers, captured.copy(), modules_.map, nullptr, nullptr, stack_);
  EXPECT_EQ(stack_.frames.data(), before);
  EXPECT_EQ(stack_.frames.capacity(), capacity);
}

}  // namespace
}  // namespace ddprof
