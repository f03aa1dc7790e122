#include "session/continuity.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>

namespace ddprof {
namespace {

constexpr Nanoseconds kNow{1'000'000};
constexpr Nanoseconds kLatest{2'000'000};

Legacy written_by_an_honest_worker() {
  Legacy legacy;
  legacy.sequence = 7;
  legacy.started = 10;
  legacy.period_started = 1'500'000;
  legacy.unix_offset = 1'700'000'000'000'000'000;
  legacy.sampled = 123;
  legacy.losses[1] = 5;
  return legacy;
}

TEST(Continuity, GivesBackWhatWasCommitted) {
  Continuity continuity;
  continuity.commit(written_by_an_honest_worker());
  EXPECT_EQ(continuity.legacy().sequence, 7U);
  EXPECT_EQ(believed(continuity.legacy(), kNow, kLatest).sampled, 123);
}

TEST(Continuity, StaysInsideItselfWhateverAWorkerWroteThere) {
  auto continuity = std::make_unique<Continuity>();
  std::memset(static_cast<void*>(continuity.get()), 0xff, sizeof *continuity);
  EXPECT_EQ(continuity->legacy().sequence, ~std::uint64_t{0});
  continuity->commit(written_by_an_honest_worker());
  EXPECT_EQ(continuity->legacy().sequence, 7U);
}

TEST(Continuity, DoesNotBelieveTimesToCome) {
  Legacy legacy = written_by_an_honest_worker();
  legacy.period_started = kLatest.count() + 1;  // nothing would be closed until then
  EXPECT_EQ(believed(legacy, kNow, kLatest).started, 0);
  legacy = written_by_an_honest_worker();
  legacy.started = kNow.count() + 1;
  EXPECT_EQ(believed(legacy, kNow, kLatest).started, 0);
}

TEST(Continuity, DoesNotBelieveAmountsThatDoNotAddUp) {
  for (const std::int64_t huge :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    Legacy legacy = written_by_an_honest_worker();
    legacy.told_by_samples = huge;
    EXPECT_EQ(believed(legacy, kNow, kLatest).sampled, 0);
    legacy = written_by_an_honest_worker();
    legacy.losses.back() = huge;
    EXPECT_EQ(believed(legacy, kNow, kLatest).sampled, 0);
    EXPECT_EQ(believed(legacy, kNow, kLatest).sequence, 7U);  // names of files count on
  }
}

}  // namespace
}  // namespace ddprof
