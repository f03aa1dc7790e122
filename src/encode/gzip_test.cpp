#include "encode/compression.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string compressed(std::string_view text) { return gzip(text).value_or(""); }

TEST(Gzip, GivesBackWhatItWasGiven) {
  for (std::size_t size : {0U, 1U, 1000U, 300'000U}) {
    std::string text(size, 'a');
    for (std::size_t at = 0; at < size; at += 7) text[at] = static_cast<char>(at * 31);
    const Result<std::string> inflated = gunzip(bytes_of(compressed(text)), size);
    ASSERT_TRUE(inflated.ok()) << inflated.error().message;
    EXPECT_EQ(*inflated, text);
  }
}

TEST(Gzip, IsTheSameForTheSameBytes) { EXPECT_EQ(compressed("profile"), compressed("profile")); }

TEST(Gzip, JoinsMembers) {
  const std::string both = compressed("first ") + compressed("second");
  EXPECT_EQ(gunzip(bytes_of(both), 100).value_or(""), "first second");
}

TEST(Gzip, RefusesToExceedItsLimit) {
  const std::string text(1000, 'x');
  EXPECT_TRUE(gunzip(bytes_of(compressed(text)), 1000).ok());
  const Result<std::string> inflated = gunzip(bytes_of(compressed(text)), 999);
  ASSERT_FALSE(inflated.ok());
  EXPECT_EQ(inflated.error().code, ErrorCode::corrupt);
}

TEST(Gzip, RefusesDataThatIsCutOrBroken) {
  const std::string whole = compressed("some text that is long enough to be cut");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(gunzip(bytes_of(whole.substr(0, length)), 1000).ok()) << length;
  }
  std::string broken = whole;
  broken[whole.size() - 6] = static_cast<char>(broken[whole.size() - 6] ^ 1);  // in the checksum
  EXPECT_FALSE(gunzip(bytes_of(broken), 1000).ok());
}

}  // namespace
}  // namespace ddprof
