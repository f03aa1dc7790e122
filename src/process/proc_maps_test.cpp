#include "process/proc_maps.hpp"

#include <gtest/gtest.h>

#include "base/read_file.hpp"

namespace ddprof {
namespace {

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
