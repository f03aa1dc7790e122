#include "runtime/target_library.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

TEST(TargetLibrary, IsBuiltIn) {
  ASSERT_GT(embedded_library().size(), 4096U);
  EXPECT_EQ(static_cast<char>(embedded_library()[1]), 'E');
}

TEST(TargetLibrary, IsCopiedOnceIntoTheFirstFolderThatCanHoldIt) {
  const ScratchFolder scratch;
  const std::vector<std::string> folders = {"/proc/no", scratch.path("cache/ddprof")};
  const auto path = provide_library("", folders);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_TRUE(path->starts_with(folders[1]));
  EXPECT_EQ(std::filesystem::file_size(*path), embedded_library().size());
  const auto written = std::filesystem::last_write_time(*path);
  EXPECT_EQ(provide_library("", folders).value(), *path);
  EXPECT_EQ(std::filesystem::last_write_time(*path), written);
}

TEST(TargetLibrary, ACopyThatSomethingElseWasWrittenOverIsMadeAgain) {
  const ScratchFolder scratch;
  const std::vector<std::string> folders = {scratch.path("ddprof")};
  const std::string path = provide_library("", folders).value();
  std::ofstream(path) << "nonsense";
  EXPECT_EQ(provide_library("", folders).value(), path);
  EXPECT_EQ(std::filesystem::file_size(path), embedded_library().size());
}

TEST(TargetLibrary, AFolderThatOthersCanWriteIsNotUsed) {
  const ScratchFolder scratch;
  const std::string open = scratch.path("open");
  ::mkdir(open.c_str(), 0777);
  ::chmod(open.c_str(), 0777);
  EXPECT_FALSE(provide_library("", {open}).ok());
}

TEST(TargetLibrary, APathThatLdSoWouldSplitIsNotUsed) {
  const ScratchFolder scratch;
  EXPECT_FALSE(provide_library("", {scratch.path("with space")}).ok());
  EXPECT_FALSE(provide_library("", {"relative"}).ok());
}

}  // namespace
}  // namespace ddprof
