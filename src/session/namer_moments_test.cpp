#include "session/namer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(MomentTable, GivesEachSampleItsTimesInTheirOrder) {
  AggregatedProfile profile;
  profile.samples.resize(3);
  profile.moments = {{0, Nanoseconds(100)}, {2, Nanoseconds(150)}, {0, Nanoseconds(200)}};
  const MomentTable table(profile);
  EXPECT_THAT(table.times(0), ElementsAre(Nanoseconds(100), Nanoseconds(200)));
  EXPECT_THAT(table.times(1), IsEmpty());
  EXPECT_THAT(table.times(2), ElementsAre(Nanoseconds(150)));
}

TEST(MomentTable, IsEmptyWithoutATimeline) {
  AggregatedProfile profile;
  profile.samples.resize(1);
  EXPECT_THAT(MomentTable(profile).times(0), IsEmpty());
}

}  // namespace
}  // namespace ddprof
