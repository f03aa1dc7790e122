#include "export/answer.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

using std::chrono::seconds;

constexpr Nanoseconds kNow = seconds(784'111'777);  // 1994-11-06T08:49:37Z, by date(1)

TEST(RetryAfter, IsANumberOfSeconds) {
  EXPECT_EQ(parse_retry_after("0", kNow), seconds(0));
  EXPECT_EQ(parse_retry_after("17", kNow), seconds(17));
}

TEST(RetryAfter, IsADate) {
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", kNow), seconds(0));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:51:07 GMT", kNow), seconds(90));
  EXPECT_EQ(parse_retry_after("Mon, 07 Nov 1994 08:49:37 GMT", kNow), seconds(86'400));
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 23:59:60 GMT", kNow), seconds(54'623)) << "a leap second";
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT", kNow), seconds(0)) << "it has passed";
}

TEST(RetryAfter, IsNothingElse) {
  for (const char* text :
       {"", " ", "-1", "1.5", "99999999999", "soon", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:3x GMT"})
    EXPECT_EQ(parse_retry_after(text, kNow), std::nullopt) << text;
}

}  // namespace
}  // namespace ddprof
