#include "encode/human_value.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

TEST(HumanValue, HasThreeDigitsAndTheUnitThatSuits) {
  const struct {
    std::int64_t value;
    const char* unit;
    const char* text;
  } cases[] = {
      {0, "nanoseconds", "0 ns"},
      {999, "nanoseconds", "999 ns"},
      {1000, "nanoseconds", "1.00 us"},
      {9994, "nanoseconds", "9.99 us"},
      {9995, "nanoseconds", "10.0 us"},
      {99'949, "nanoseconds", "99.9 us"},
      {99'950, "nanoseconds", "100 us"},
      {999'499, "nanoseconds", "999 us"},
      {999'500, "nanoseconds", "1.00 ms"},
      {-1500, "nanoseconds", "-1.50 us"},
      {3, "milliseconds", "3.00 ms"},
      {2, "seconds", "2.00 s"},
      {1023, "bytes", "1023 B"},
      {1024, "bytes", "1.00 KiB"},
      {std::int64_t{3} << 40, "bytes", "3.00 TiB"},
      {1234, "count", "1,234"},
  };
  for (const auto& [value, unit, text] : cases) EXPECT_EQ(human_value(value, unit), text) << value << unit;
}

TEST(HumanValue, CountsHaveCommas) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(-999), "-999");
  EXPECT_EQ(human_count(-1000), "-1,000");
  EXPECT_EQ(human_count(1'234'567), "1,234,567");
}

TEST(HumanValue, PercentTimeAndPlural) {
  EXPECT_EQ(human_percent(1, 3), "33.3 %");
  EXPECT_EQ(human_percent(1, 0), "0.0 %");
  EXPECT_EQ(human_time(1'700'000'000'999'999'999), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(plural(1, "frame", "frames"), "1 frame");
  EXPECT_EQ(plural(0, "frame", "frames"), "0 frames");
  EXPECT_EQ(plural(1000, "frame", "frames"), "1,000 frames");
}

}  // namespace
}  // namespace ddprof
