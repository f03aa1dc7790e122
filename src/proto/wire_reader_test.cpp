#include "proto/wire_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace ddprof {
namespace {

using namespace std::literals;
using ::testing::ElementsAre;

std::vector<std::uint64_t> read_varints(std::string_view message, bool* is_failed = nullptr) {
  WireReader reader(message);
  std::vector<std::uint64_t> values;
  while (reader.next()) reader.varints([&](std::uint64_t value) { values.push_back(value); });
  if (is_failed != nullptr) *is_failed = reader.is_failed();
  return values;
}

TEST(WireReader, ReadsRepeatedIntegersPackedAndNot) {
  EXPECT_THAT(read_varints("\x08\x05\x0a\x03\x01\xac\x02\x08\x07"sv), ElementsAre(5, 1, 300, 7));
}

TEST(WireReader, FailsOnAnotherWireTypeInsteadOfAborting) {
  WireReader reader("\x0a\x01x"sv);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.varint(), 0U);
  EXPECT_TRUE(reader.is_failed());
  EXPECT_FALSE(reader.next());

  WireReader text("\x08\x01"sv);
  ASSERT_TRUE(text.next());
  EXPECT_EQ(text.bytes(), "");
  EXPECT_TRUE(text.is_failed());
}

TEST(WireReader, FailsOnBytesThatEndTooSoon) {
  for (std::string_view message :
       {"\x0a\x05 ab"sv, "\x08\xff"sv, "\x0a\x02\x01\xff"sv, "\x09\x01"sv, "\x0f\x01"sv, "\x00"sv}) {
    bool is_failed = false;
    (void)read_varints(message, &is_failed);
    EXPECT_TRUE(is_failed) << testing::PrintToString(message);
  }
}

TEST(WireReader, FailsOnAVarintOfMoreThanTenBytes) {
  bool is_failed = false;
  EXPECT_TRUE(read_varints("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv, &is_failed).size() <= 1);
  EXPECT_TRUE(is_failed);
}

}  // namespace
}  // namespace ddprof
