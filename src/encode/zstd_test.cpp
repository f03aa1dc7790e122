#include "encode/compression.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

namespace ddprof {
namespace {

TEST(Zstd, WritesAFrameThatTheLibraryReads) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i % 977);
  for (const std::string& bytes : {std::string(), std::string("one"), text}) {
    const auto packed = zstd(bytes);
    ASSERT_TRUE(packed);
    ASSERT_EQ(ZSTD_getFrameContentSize(packed->data(), packed->size()), bytes.size());
    std::string unpacked(bytes.size(), '\0');
    ASSERT_EQ(ZSTD_decompress(unpacked.data(), unpacked.size(), packed->data(), packed->size()),
              bytes.size());
    EXPECT_EQ(unpacked, bytes);
  }
  EXPECT_LT(zstd(text)->size(), text.size() / 20);
}

}  // namespace
}  // namespace ddprof
