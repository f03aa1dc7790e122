#include "session/idle_roots.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

constexpr Pid kMaster{12};

TEST(IdleRoots, TellsThatOnlyChildrenWereBusy) {
  IdleRoots roots({kMaster});
  EXPECT_EQ(roots.notice(), "");
  roots.add(Pid{13});
  EXPECT_EQ(roots.notice(), "process 12 was idle: all samples are of 1 process that it started");
  roots.add(Pid{14});
  roots.add(Pid{13});
  EXPECT_EQ(roots.notice(), "process 12 was idle: all samples are of 2 processes that it started");
  roots.add(kMaster);
  EXPECT_EQ(roots.notice(), "");
}

TEST(IdleRoots, SaysNothingWhereOneOfTheNamedWasBusy) {
  IdleRoots roots({kMaster, Pid{13}});
  roots.add(Pid{14});
  EXPECT_EQ(roots.notice(),
            "the 2 processes that were named were idle: all samples are of 1 process that they started");
  roots.add(Pid{13});
  EXPECT_EQ(roots.notice(), "");
}

TEST(IdleRoots, SaysNothingOfTheWholeHostOrOfAProgramThatWeStarted) {
  IdleRoots none({});
  none.add(Pid{13});
  EXPECT_EQ(none.notice(), "");
}

TEST(IdleRoots, RemembersWhatAnEarlierWorkerSaw) {
  SessionHandover handover;
  IdleRoots first({kMaster});
  first.resume(handover);
  first.add(Pid{13});
  first.hand_over(handover);
  handover.sequence = 3;
  IdleRoots second({kMaster});
  second.resume(handover);
  EXPECT_EQ(second.notice(), "process 12 was idle: all samples are of processes that it started");
  second.add(kMaster);
  second.hand_over(handover);
  IdleRoots third({kMaster});
  third.resume(handover);
  third.add(Pid{13});
  EXPECT_EQ(third.notice(), "");
}

}  // namespace
}  // namespace ddprof
