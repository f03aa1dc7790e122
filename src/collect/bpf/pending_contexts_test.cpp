#include "collect/bpf/pending_contexts.hpp"

#include <gmock/gmock.h>

#include <array>

namespace ddprof {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr InterruptKey kThread{Pid{10}, Tid{11}, 1, 0x400};
constexpr std::array<std::byte, 3> kBytes{};

TEST(PendingContexts, GoToTheSampleOfTheSameInterrupt) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 101us), SizeIs(3));
}

TEST(PendingContexts, GoToOneSampleOnly) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  (void)pending.take(kThread, 101us);
  EXPECT_THAT(pending.take(kThread, 102us), IsEmpty());
}

TEST(PendingContexts, MayBeReadJustAfterTheSampleWasStamped) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 99us), SizeIs(3));
}

TEST(PendingContexts, NeverGoToASampleThatIsAsFarAwayAsAnotherSampleOfTheThreadMayBe) {
  PendingContexts pending(100us);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 126us), IsEmpty());
}

TEST(PendingContexts, NeverGoToTheNextSampleWhenTheirOwnWasLost) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 100us + 10ms), IsEmpty());
}

TEST(PendingContexts, NeverGoToAnotherThreadCpuOrInstruction) {
  for (const InterruptKey& other :
       {InterruptKey{Pid{10}, Tid{12}, 1, 0x400}, InterruptKey{Pid{9}, Tid{11}, 1, 0x400},
        InterruptKey{Pid{10}, Tid{11}, 2, 0x400}, InterruptKey{Pid{10}, Tid{11}, 1, 0x404}}) {
    PendingContexts pending(1ms);
    pending.add(kThread, 100us, kBytes);
    EXPECT_THAT(pending.take(other, 101us), IsEmpty());
  }
}

TEST(PendingContexts, TheNearestOfSeveralIsTaken) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, std::span(kBytes).first(1));
  pending.add(kThread, 200us, std::span(kBytes).first(2));
  EXPECT_THAT(pending.take(kThread, 180us), SizeIs(2));
}

TEST(PendingContexts, AreForgottenWhenTheirTimeHasPassed) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  pending.add(kThread, 300us, kBytes);
  pending.forget_before(200us);
  EXPECT_EQ(pending.size(), 1U);
}

}  // namespace
}  // namespace ddprof
