#include "cli/stored_profiles.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

TEST(Moment, ReadsTimesOfRfc3339) {
  EXPECT_EQ(parse_rfc3339("1970-01-02T00:00:01Z"), Nanoseconds(24h + 1s));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.250000000Z"), Nanoseconds(250ms));
  EXPECT_EQ(parse_rfc3339("1970-01-01T02:00:00+01:30"), Nanoseconds(30min));
  EXPECT_EQ(parse_rfc3339("1969-12-31T23:00:00-01:00"), Nanoseconds(0));
  for (const char* wrong :
       {"", "1970-01-01", "1970-13-01T00:00:00Z", "1970-02-30T00:00:00Z", "1970-01-01T24:00:00Z",
        "1970-01-01T00:00:00", "1970-01-01T00:00:00Zx", "9999-01-01T00:00:00Z", "-970-01-01T00:00:00Z"})
    EXPECT_EQ(parse_rfc3339(wrong), std::nullopt) << wrong;
}

TEST(Moment, ReadsHowLongAgo) {
  const Nanoseconds now = 100h;
  EXPECT_EQ(*parse_moment("30s", now), Nanoseconds(100h - 30s));
  EXPECT_EQ(*parse_moment("10m", now), Nanoseconds(100h - 10min));
  EXPECT_EQ(*parse_moment("2h", now), Nanoseconds(98h));
  EXPECT_EQ(*parse_moment("1d", now), Nanoseconds(76h));
  EXPECT_EQ(*parse_moment("1970-01-01T00:00:00Z", now), Nanoseconds(0));
  for (const char* wrong : {"", "10", "m", "-5m", "10 m", "10w", "99999999999999999999d", "9999999999d"})
    EXPECT_FALSE(parse_moment(wrong, now).ok()) << wrong;
}

}  // namespace
}  // namespace ddprof
