#include "session/stack_builder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

class StackBuilderTest : public testing::Test {
 protected:
  static SampleEvent sample_of(Pid pid, Nanoseconds time = 1s) {
    SampleEvent sample;
    sample.pid = pid;
    sample.tid = Tid{to_int(pid)};
    sample.time = time;
    return sample;
  }

  ProcFileProvider provider_;
  FileThreads threads_;
  FileRegistry files_{provider_, &threads_};
  ProcessTable processes_{files_};
  CodeIndex code_{files_, threads_};
  StackBuilder builder_{processes_, code_, Architecture::x86_64};
  const std::array<std::uint64_t, 2> addresses_{0x500, 0x600};
};

constexpr Pid kGoneProcess{1 << 23};

TEST_F(StackBuilderTest, AThreadOfTheKernelHasItsFramesAlone) {
  SampleEvent sample = sample_of(kGoneProcess);
  sample.kernel_chain = addresses_;
  const BuiltStack built = builder_.build(sample);
  EXPECT_EQ(built.reason, StopReason::complete);
  ASSERT_EQ(built.frames.size(), 2U);
  EXPECT_EQ(built.frames[1].kind, FrameKind::kernel);
  EXPECT_EQ(built.frames[1].address, 0x600U);
  EXPECT_FALSE(built.is_deep);
  EXPECT_FALSE(built.is_from_code);
}

TEST_F(StackBuilderTest, ASampleOfNothingSaysSo) {
  const BuiltStack built = builder_.build(sample_of(kGoneProcess));
  EXPECT_EQ(built.reason, StopReason::no_registers);
  ASSERT_EQ(built.frames.size(), 1U);
  EXPECT_EQ(built.frames[0].kind, FrameKind::stopped);
  EXPECT_EQ(built.frames[0].reason, StopReason::no_registers);
}

TEST_F(StackBuilderTest, KernelFramesComeBeforeThoseOfTheProgram) {
  SampleEvent sample = sample_of(kGoneProcess);
  sample.kernel_chain = std::span(addresses_).first(1);
  sample.user_chain = addresses_;
  const BuiltStack built = builder_.build(sample);
  ASSERT_EQ(built.frames.size(), 3U);
  EXPECT_EQ(built.frames[0].kind, FrameKind::kernel);
  EXPECT_EQ(built.frames[1].address, 0x500U);
  EXPECT_EQ(built.frames[2].address, 0x5ffU) << "into the call";
  EXPECT_EQ(built.reason, StopReason::complete);
}

TEST_F(StackBuilderTest, WhatIsInExecHasNoStackAnyMore) {
  SampleEvent sample = sample_of(kGoneProcess);
  sample.kernel_chain = addresses_;
  sample.has_registers = true;
  sample.registers.pc = 0x7000;
  sample.registers.sp = 0x9000;
  sample.stack_requested = 8192;
  EXPECT_EQ(builder_.build(sample).reason, StopReason::unknown_code);
  sample.registers.by_dwarf_number[0] = static_cast<std::uint64_t>(std::int64_t{-ENOSYS});
  EXPECT_EQ(builder_.build(sample).reason, StopReason::complete);
  EXPECT_EQ(builder_.build(sample).frames.size(), 2U);
  const std::array<std::byte, 64> stack{};
  sample.stack = stack;
  EXPECT_NE(builder_.build(sample).reason, StopReason::complete);
}

TEST_F(StackBuilderTest, ItsOwnStacksAreUnwoundAHundredTimesInASecond) {
  const auto reason_of = [this](Pid pid, Nanoseconds time) {
    SampleEvent sample = sample_of(pid, time);
    sample.user_chain = addresses_;
    return builder_.build(sample).reason;
  };
  const Pid own{::getpid()};
  for (int number = 0; number < 100; ++number)
    ASSERT_NE(reason_of(own, 7s), StopReason::own_process) << number;
  EXPECT_EQ(reason_of(own, 7s + 999ms), StopReason::own_process);
  EXPECT_NE(reason_of(kGoneProcess, 7s + 999ms), StopReason::own_process);
  EXPECT_NE(reason_of(own, 8s), StopReason::own_process);
}

}  // namespace
}  // namespace ddprof
