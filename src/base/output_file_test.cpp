#include "base/output_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr uid_t kPlanter = 61001;

#define NEEDS_ROOT() \
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user"

std::size_t entries(const ScratchFolder& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder.path()), {}));
}

void give_away(const std::string& path) { ASSERT_EQ(::lchown(path.c_str(), kPlanter, kPlanter), 0); }

TEST(OutputFile, ReplacesAnOlderFileAsAWhole) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_output(folder.path("a"), "old content that is longer").ok());
  ASSERT_TRUE(write_output(folder.path("a"), "new").ok());
  EXPECT_EQ(folder.read("a"), "new");
  EXPECT_EQ(entries(folder), 1U) << "nothing temporary is left";
  struct stat status {};
  ASSERT_EQ(::stat(folder.path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST(OutputFile, ANewFileReplacesNone) {
  const ScratchFolder scratch;
  const auto folder = OutputFolder::open(scratch.path());
  EXPECT_TRUE(*folder->create("new", "first"));
  EXPECT_FALSE(*folder->create("new", "second"));
  fs::create_symlink(scratch.path("nowhere"), scratch.path("link"));
  EXPECT_FALSE(*folder->create("link", "third"));
  EXPECT_EQ(scratch.read("new"), "first");
  EXPECT_EQ(entries(scratch), 2U) << "nothing temporary is left";
}

TEST(OutputFile, AFullDiskIsAnError) {
  const auto written = write_output("/dev/full", "x");  // takes the open and refuses every byte
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::exhausted);
}

TEST(OutputFile, ALinkIsReplacedAndNotWrittenThrough) {
  const ScratchFolder folder;
  folder.write("precious", "precious");
  fs::create_symlink("precious", folder.path("a"));
  ASSERT_TRUE(write_output(folder.path("a"), "new").ok());
  EXPECT_EQ(folder.read("precious"), "precious");
  EXPECT_FALSE(fs::is_symlink(folder.path("a")));
  EXPECT_EQ(folder.read("a"), "new");
}

TEST(OutputFile, LinksOnTheWayAreFollowedIfTheyAreOurs) {
  const ScratchFolder folder;
  fs::create_directories(folder.path("real/inner"));
  fs::create_symlink("real", folder.path("link"));
  fs::create_symlink(folder.path("link/../link/inner"), folder.path("absolute"));
  ASSERT_TRUE(write_output(folder.path("absolute/./a"), "here").ok());
  EXPECT_EQ(folder.read("real/inner/a"), "here");
  fs::create_symlink("loop", folder.path("loop"));
  EXPECT_THAT(write_output(folder.path("loop/a"), "").error().message, HasSubstr("Too many levels"));
}

TEST(OutputFile, LinksOnTheWayAreNotFollowedIfTheyAreAnotherUsers) {
  NEEDS_ROOT();
  const ScratchFolder folder;
  fs::create_directory(folder.path("real"));
  fs::create_symlink("real", folder.path("link"));
  give_away(folder.path("link"));
  const auto refused = write_output(folder.path("link/a"), "x");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("link is a link of user 61001"));
  EXPECT_FALSE(check_writable(folder.path("link/a")).ok());
  EXPECT_FALSE(append_line(folder.path("link/log"), "x").ok());
  EXPECT_TRUE(fs::is_empty(folder.path("real")));
}

TEST(OutputFile, FoldersAreMadeForThisUserAlone) {
  const ScratchFolder folder;
  ASSERT_TRUE(OutputFolder::open(folder.path("a/b/c"), MissingFolders::make).ok());
  for (const char* name : {"a", "a/b", "a/b/c"}) {
    struct stat status {};
    ASSERT_EQ(::stat(folder.path(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700U);
  }
  EXPECT_EQ(OutputFolder::open(folder.path("none")).error().code, ErrorCode::not_found);
}

TEST(OutputFile, ASpecialFileThatTheUserNamedIsWrittenTo) {
  const ScratchFolder folder;
  ASSERT_TRUE(write_output("/dev/null", "x").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const std::string path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] {
    std::ifstream stream(path);
    read.assign(std::istreambuf_iterator<char>(stream), {});
  });
  EXPECT_TRUE(write_output(path, std::string(200'000, 'x')).ok());
  reader.join();
  EXPECT_EQ(read.size(), 200'000U);
}

TEST(OutputFile, AFifoWithoutAReaderIsNotWaitedForForLong) {
  const ScratchFolder folder;
  const std::string path = folder.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(write_output(path, "x", 50ms).error().message, HasSubstr("nothing reads this FIFO"));
  const UniqueFd lazy(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_THAT(write_output(path, std::string(200'000, 'x'), 50ms).error().message,
              HasSubstr("its reader takes nothing"));
}

TEST(OutputFile, WhatAnotherUserPlantsInASharedFolderIsReplaced) {
  NEEDS_ROOT();
  const ScratchFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  const std::string fifo = folder.path("fifo"), disk = folder.path("disk");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  give_away(fifo);
  ASSERT_TRUE(check_writable(fifo).ok());
  ASSERT_TRUE(write_output(fifo, "profile").ok());
  EXPECT_EQ(folder.read("fifo"), "profile");
  fs::create_symlink("/dev/null", disk);
  give_away(disk);
  ASSERT_TRUE(write_output(disk, "profile").ok());
  EXPECT_EQ(folder.read("disk"), "profile");
}

TEST(OutputFile, ABlockDeviceIsNeverWrittenTo) {
  NEEDS_ROOT();
  const ScratchFolder folder;
  const std::string path = folder.path("disk");
  if (::mknod(path.c_str(), S_IFBLK | 0600, makedev(7, 255)) != 0) GTEST_SKIP() << "no device can be made";
  EXPECT_THAT(check_writable(path).error().message, HasSubstr("is a block device"));
  EXPECT_THAT(write_output(path, "x").error().message, HasSubstr("is a block device"));
  EXPECT_FALSE(append_line(path, "x").ok());
}

TEST(OutputFile, WhatCannotBeWrittenIsKnownBefore) {
  const ScratchFolder folder;
  EXPECT_TRUE(check_writable(folder.path("a")).ok());
  EXPECT_TRUE(check_writable("/dev/stdout").ok());
  const auto missing = check_writable(folder.path("no/such/a"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "write " + folder.path("no/such/a") + ": No such file or directory");
  EXPECT_FALSE(missing.error().hint.empty());
  EXPECT_THAT(check_writable(folder.path()).error().message, HasSubstr("is a directory"));
}

TEST(OutputFile, ALogIsAddedTo) {
  const ScratchFolder folder;
  fs::create_symlink("real", folder.path("log"));
  ASSERT_TRUE(check_log(folder.path("log")).ok());
  ASSERT_TRUE(append_line(folder.path("log"), "one\n").ok());
  ASSERT_TRUE(append_line(folder.path("log"), "two\n").ok());
  EXPECT_EQ(folder.read("real"), "one\ntwo\n");
  EXPECT_EQ(check_log("/no/such/log").error().message, "open /no/such/log: No such file or directory");
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(append_line(fifo, "x").ok());
}

TEST(OutputFile, ALogOfAnotherUserIsNotAddedTo) {
  NEEDS_ROOT();
  const ScratchFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  folder.write("theirs", "");
  give_away(folder.path("theirs"));
  EXPECT_FALSE(append_line(folder.path("theirs"), "x").ok());
  folder.write("precious", "precious");
  fs::create_hard_link(folder.path("precious"), folder.path("second"));
  EXPECT_FALSE(append_line(folder.path("second"), "x").ok());
  EXPECT_EQ(folder.read("precious"), "precious");
}

}  // namespace
}  // namespace ddprof
