#include "process/address_space.hpp"

#include <gtest/gtest.h>

namespace ddprof {
namespace {

CodeMapping mapping(std::uint64_t start, std::uint64_t end, std::uint32_t file, std::uint64_t offset = 0) {
  return {.start = {start}, .end = {end}, .file_offset = offset, .file = static_cast<FileId>(file)};
}

TEST(AddressSpace, FindsTheMappingThatHoldsAnAddress) {
  AddressSpace space;
  space.map(mapping(0x3000, 0x4000, 2));
  space.map(mapping(0x1000, 0x2000, 1));
  ASSERT_NE(space.find({0x1fff}), nullptr);
  EXPECT_EQ(space.find({0x1fff})->file, FileId{1});
  EXPECT_EQ(space.find({0x3000})->file, FileId{2});
  EXPECT_EQ(space.find({0x2000}), nullptr);
  EXPECT_EQ(space.find({0xfff}), nullptr);
  EXPECT_EQ(space.find({0x4000}), nullptr);
}

TEST(AddressSpace, ANewMappingReplacesWhatItCovers) {
  AddressSpace space;
  space.map(mapping(0x1000, 0x5000, 1, 0x100));
  space.map(mapping(0x2000, 0x3000, 2));
  ASSERT_EQ(space.mappings().size(), 3U);
  EXPECT_EQ(space.find({0x1800})->file, FileId{1});
  EXPECT_EQ(space.find({0x2800})->file, FileId{2});
  const CodeMapping* tail = space.find({0x3800});
  ASSERT_NE(tail, nullptr);
  EXPECT_EQ(tail->file, FileId{1});
  EXPECT_EQ(tail->file_offset, 0x100U + 0x2000U);
}

TEST(AddressSpace, AMappingOverSeveralRemovesThemAll) {
  AddressSpace space;
  space.map(mapping(0x1000, 0x2000, 1));
  space.map(mapping(0x2000, 0x3000, 2));
  space.map(mapping(0x3000, 0x4000, 3));
  space.map(mapping(0x1800, 0x3800, 4));
  ASSERT_EQ(space.mappings().size(), 3U);
  EXPECT_EQ(space.find({0x2000})->file, FileId{4});
  EXPECT_EQ(space.find({0x1000})->end, Address{0x1800});
  EXPECT_EQ(space.find({0x3800})->file, FileId{3});
}

TEST(AddressSpace, IgnoresAnEmptyMapping) {
  AddressSpace space;
  space.map(mapping(0x1000, 0x1000, 1));
  EXPECT_TRUE(space.mappings().empty());
}

}  // namespace
}  // namespace ddprof
