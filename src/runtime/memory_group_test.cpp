#include "runtime/memory_group.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/read_file.hpp"
#include "base/scratch_fixture.hpp"
#include "runtime/in_child_fixture.hpp"

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
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("memory/here")));
}

std::string pid_namespace() {
  struct stat status {};
  ::stat("/proc/self/ns/pid", &status);
  return std::to_string(status.st_ino);
}

// What is left of groups of these names once a supervisor has started there.
std::vector<std::string> left_of(const std::vector<std::string>& names) {
  const ScratchFolder folder;
  for (const std::string& name : names)
    std::filesystem::create_directories(folder.path("memory/here/" + name));
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "5:memory:/here\n", 7));
  std::vector<std::string> left;
  for (const std::string& name : names)
    if (std::filesystem::exists(folder.path("memory/here/" + name))) left.push_back(name);
  return left;
}

TEST(MemoryGroup, RemovesThoseOfSupervisorsThatWereKilled) {
  EXPECT_TRUE(left_of({"ddprof-" + pid_namespace() + "-2000000000-77"}).empty());
  EXPECT_TRUE(left_of({"ddprof-" + pid_namespace() + "-1-77"}).empty());  // the number was used again
}

TEST(MemoryGroup, LeavesAloneWhatMayBeOfOthers) {
  const std::vector<std::string> others = {"ddprof-2000000000",      "ddprof-1",     "ddprof-",
                                           "ddprof-4-2000000000-77",  // of another PID namespace
                                           "ddprof-exporter-1-2",    "ddprof-x-y-z", "database"};
  EXPECT_EQ(left_of(others), others);
}

TEST(OomScore, IsRaisedAndNeverLowered) {
  EXPECT_EQ(in_child([] {
              raise_oom_score(500);
              raise_oom_score(400);
              return read_file("/proc/self/oom_score_adj").value_or("");
            }),
            "500\n");
}

TEST(MemoryGroup, IsNotMadeInAGroupThatMayNotBeDivided) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.path("pod"));
  EXPECT_FALSE(MemoryGroup::create(1 << 20, folder.path(), "0::/pod\n", 7));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("pod")));
}

}  // namespace
}  // namespace ddprof
