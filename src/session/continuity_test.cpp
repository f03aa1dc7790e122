#include "session/continuity.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>

namespace ddprof {
namespace {

constexpr Nanoseconds kNow{1'000'000};
constexpr Nanoseconds kLatest{2'000'000};

SessionHandover written_by_an_honest_worker() {
  SessionHandover handover;
  handover.sequence = 7;
  handover.started = 10;
  handover.period_started = 1'500'000;
  handover.unix_offset = 1'700'000'000'000'000'000;
  handover.sampled = 123;
  handover.losses[1] = 5;
  return handover;
}

TEST(Continuity, GivesBackWhatWasCommitted) {
  Continuity continuity;
  continuity.commit(written_by_an_honest_worker());
  EXPECT_EQ(continuity.handover().sequence, 7U);
  EXPECT_EQ(believed(continuity.handover(), kNow, kLatest).sampled, 123);
}

TEST(Continuity, StaysInsideItselfWhateverAWorkerWroteThere) {
  auto continuity = std::make_unique<Continuity>();
  std::memset(static_cast<void*>(continuity.get()), 0xff, sizeof *continuity);
  EXPECT_EQ(continuity->handover().sequence, ~std::uint64_t{0});
  continuity->commit(written_by_an_honest_worker());
  EXPECT_EQ(continuity->handover().sequence, 7U);
}

TEST(Continuity, DoesNotBelieveTimesToCome) {
  SessionHandover handover = written_by_an_honest_worker();
  handover.period_started = kLatest.count() + 1;  // nothing would be closed until then
  EXPECT_EQ(believed(handover, kNow, kLatest).started, 0);
  handover = written_by_an_honest_worker();
  handover.started = kNow.count() + 1;
  EXPECT_EQ(believed(handover, kNow, kLatest).started, 0);
}

TEST(Continuity, DoesNotBelieveAmountsThatDoNotAddUp) {
  for (const std::int64_t huge :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    SessionHandover handover = written_by_an_honest_worker();
    handover.told_by_samples = huge;
    EXPECT_EQ(believed(handover, kNow, kLatest).sampled, 0);
    handover = written_by_an_honest_worker();
    handover.losses.back() = huge;
    EXPECT_EQ(believed(handover, kNow, kLatest).sampled, 0);
    EXPECT_EQ(believed(handover, kNow, kLatest).sequence, 7U);  // names of files count on
  }
}

}  // namespace
}  // namespace ddprof
