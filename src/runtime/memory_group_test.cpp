#include "runtime/memory_group.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/read_file.hpp"
#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

// Folders that look like control groups; the files in them do not come by themselves.
TEST(MemoryGroup, IsMadeNowhereWithoutAMemoryController) {
  const ScratchFolder folder;
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "", 7));
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "1:cpu:/here\nbroken\n", 7));
}

TEST(MemoryGroup, IsNotMadeWithoutALimit) {
  const ScratchFolder folder;
  EXPECT_FALSE(MemoryGroup::create(0, folder.path(), "5:memory:/here\n", 7));
}

TEST(MemoryGroup, LeavesNothingWhereItsLimitCannotBeSet) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("memory/here"));
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "5:memory:/here\n0::/\n", 7));
  EXPECT_FALSE(std::filesystem::exists(folder.path("memory/here/ddprof-7")));
}

TEST(MemoryGroup, RemovesThoseOfSupervisorsThatWereKilled) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("memory/here/ddprof-2000000000"));
  std::filesystem::create_directories(folder.path("memory/here/ddprof-1"));
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "5:memory:/here\n", 7));
  EXPECT_FALSE(std::filesystem::exists(folder.path("memory/here/ddprof-2000000000")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("memory/here/ddprof-1")));
}

TEST(MemoryGroup, IsNotMadeInAGroupThatMayNotBeDivided) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("pod"));
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "0::/pod\n", 7));
  EXPECT_FALSE(std::filesystem::exists(folder.path("pod/ddprof-7")));
}

}  // namespace
}  // namespace ddprof
