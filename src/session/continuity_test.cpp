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

TEST(Continuity, BelievesUpToTheLimitsAndNotBeyond) {
  constexpr std::int64_t kMostOffset = std::int64_t{1} << 62U, kMost = std::int64_t{1} << 60U;
  using Change = void (*)(SessionHandover&, std::int64_t);
  const struct {
    Change set;
    std::int64_t least, most;
  } limits[] = {
      {[](SessionHandover& one, std::int64_t value) { one.started = value; }, 0, kNow.count()},
      {[](SessionHandover& one, std::int64_t value) { one.period_started = value; }, 0, kLatest.count()},
      {[](SessionHandover& one, std::int64_t value) { one.unix_offset = value; }, -kMostOffset, kMostOffset},
      {[](SessionHandover& one, std::int64_t value) { one.accounted = value; }, -kMost, kMost},
      {[](SessionHandover& one, std::int64_t value) { one.losses[2] = value; }, -kMost, kMost},
      {[](SessionHandover& one, std::int64_t value) { one.counters.over_limit.cpu = value; }, -kMost, kMost},
  };
  for (const auto& [set, least, most] : limits) {
    const auto is_believed = [&set = set](std::int64_t value) {
      SessionHandover handover = written_by_an_honest_worker();
      set(handover, value);
      return believed(handover, kNow, kLatest).sampled == 123;
    };
    EXPECT_TRUE(is_believed(least));
    EXPECT_FALSE(is_believed(least - 1));
    EXPECT_TRUE(is_believed(most));
    EXPECT_FALSE(is_believed(most + 1));
  }
}

}  // namespace
}  // namespace ddprof
