#include "process/address_space.hpp"

#include <gtest/gtest.h>

#include "base/read_file.hpp"

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

TEST(ProcMaps, ReadsALineWithAPathThatHasSpaces) {
  auto line = parse_proc_maps_line(
      "7f0000001000-7f0000002000 r-xp 0000a000 fd:01 123456   /opt/my program (deleted)");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->start, Address{0x7f0000001000});
  EXPECT_EQ(line->end, Address{0x7f0000002000});
  EXPECT_TRUE(line->is_executable);
  EXPECT_EQ(line->file_offset, 0xa000U);
  EXPECT_EQ(line->device_major, 0xfdU);
  EXPECT_EQ(line->device_minor, 1U);
  EXPECT_EQ(line->inode, 123456U);
  EXPECT_EQ(line->path, "/opt/my program (deleted)");
}

TEST(ProcMaps, ReadsAnAnonymousLine) {
  auto line = parse_proc_maps_line("7f0000001000-7f0000002000 rwxp 00000000 00:00 0 ");
  ASSERT_TRUE(line);
  EXPECT_TRUE(line->path.empty());
}

TEST(ProcMaps, RefusesWhatTheKernelDoesNotWrite) {
  for (const char* text : {"", "x", "1000", "1000-", "2000-1000 r-xp 0 0:0 0", "1000-2000", "1000-2000 r-xp",
                           "1000-2000 r-xp 0 0", "g-h r-xp 0 0:0 0"}) {
    EXPECT_FALSE(parse_proc_maps_line(text)) << text;
  }
}

TEST(ProcMaps, FindsThisTestInItsOwnMaps) {
  auto text = read_file("/proc/self/maps");
  ASSERT_TRUE(text);
  auto here = reinterpret_cast<std::uint64_t>(&parse_executable_maps);
  bool is_found = false;
  for (const ProcMapsLine& line : parse_executable_maps(*text)) {
    EXPECT_TRUE(line.is_executable);
    is_found = is_found ||
               (line.start.value <= here && here < line.end.value && line.path.ends_with("process_test"));
  }
  EXPECT_TRUE(is_found);
}

}  // namespace

}  // namespace ddprof
