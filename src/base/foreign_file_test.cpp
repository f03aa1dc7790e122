#include "base/foreign_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include "base/scratch_fixture.hpp"

namespace ddprof {
namespace {

constexpr std::uint32_t kStranger = 61001;

// Rights are taken on for good: on a thread of its own.
Result<ForeignFile> open_as(std::uint32_t user, const std::string& path,
                            std::vector<std::uint32_t> groups = {}) {
  Result<ForeignFile> file = make_error(ErrorCode::failed, "not tried");
  std::thread([&] {
    file = open_foreign_file({.path = path, .rights = UserRights{user, user, groups}});
  }).join();
  return file;
}

std::uint32_t file_user_here() { return static_cast<std::uint32_t>(::syscall(SYS_setfsuid, -1)); }

TEST(ForeignFile, IsARegularFileAndNothingElse) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder.path("fifo"), folder.path(), std::string("/dev/null")})
    EXPECT_EQ(open_foreign_file({.path = path}).error().code, ErrorCode::unsupported) << path;
}

TEST(ForeignFile, IsNotOpenedBeforeItIsKnownToBeOne) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.path("fifo").c_str(), 0600), 0);
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(watch.get(), folder.path("fifo").c_str(), IN_OPEN), 0);
  EXPECT_FALSE(open_foreign_file({.path = folder.path("fifo")}).ok());
  std::array<char, 4096> events;
  EXPECT_LT(::read(watch.get(), events.data(), events.size()), 0) << "it was opened";
}

TEST(ForeignFile, IsNotTheKernels) {
  for (const std::string path : {"/proc/self/status", "/proc/version", "/sys/kernel/notes"}) {
    const auto file = open_foreign_file({.path = path});
    ASSERT_FALSE(file.ok()) << path;
  }
  EXPECT_EQ(open_foreign_file({.path = "/proc/version"}).error().message,
            "open /proc/version: refused, it is the kernel's");
}

TEST(ForeignFile, IsNotReachedThroughOurOwnDescriptors) {
  const ScratchFolder folder;
  folder.write("file", "content");
  const UniqueFd fd(::open(folder.path("file").c_str(), O_RDONLY | O_CLOEXEC));
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  EXPECT_FALSE(open_foreign_file({.path = link}).ok());
  EXPECT_TRUE(open_foreign_file({.path = link, .links = FileRequest::Links::of_kernel}).ok());
}

TEST(ForeignFile, StaysBelowTheRootWhereverLinksLead) {
  const ScratchFolder folder;
  folder.write("secret", "of the host");
  folder.write("root/etc/real", "of the container");
  folder.run("ln -s /etc/real root/absolute && ln -s ../../secret root/climbing && ln -s '" +
             folder.path("secret") + "' root/outside");
  const auto open = [root = folder.path("root")](const char* path) {
    return open_foreign_file({.path = path, .root = root}).ok();
  };
  EXPECT_TRUE(open("/absolute"));
  EXPECT_FALSE(open("/climbing"));
  EXPECT_FALSE(open("/outside"));
  EXPECT_FALSE(open("/../secret"));
}

TEST(ForeignFile, FollowsLinksOnlyWhereTheyAreMeant) {
  const ScratchFolder folder;
  folder.write("folder/file", "content");
  folder.run("ln -s folder way && ln -s file folder/link");
  const auto code = [&](const char* path, FileRequest::Links links) {
    const auto file = open_foreign_file({.path = folder.path(path), .links = links});
    return file ? std::string("opened") : file.error().message.substr(file.error().message.rfind(':') + 2);
  };
  using Links = FileRequest::Links;
  EXPECT_EQ(code("way/link", Links::followed), "opened");
  EXPECT_EQ(code("way/file", Links::last_refused), "opened");
  EXPECT_EQ(code("way/link", Links::last_refused), "refused, it is a symbolic link");
  EXPECT_EQ(code("folder/file", Links::refused), "opened");
  EXPECT_NE(code("way/file", Links::refused), "opened");
}

TEST(ForeignFile, IsTheOneThatWasMeant) {
  const ScratchFolder folder;
  folder.write("file", "content");
  struct stat status {};
  ASSERT_EQ(::stat(folder.path("file").c_str(), &status), 0);
  FileRequest request{.path = folder.path("file"), .device = status.st_dev, .inode = status.st_ino};
  EXPECT_TRUE(open_foreign_file(request).ok());
  request.inode++;
  EXPECT_EQ(open_foreign_file(request).error().code, ErrorCode::not_found);
}

TEST(ForeignFile, IsOpenedWithTheRightsOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  const ScratchFolder folder;
  folder.run(
      "chmod 711 . && echo x >secret && chmod 600 secret && echo x >theirs && chmod 400 theirs && chown "
      "61001 theirs && "
      "echo x >shared && chown 0:4711 shared && chmod 640 shared && mkdir closed && echo x >closed/open && "
      "chmod 700 closed");
  EXPECT_EQ(open_as(kStranger, folder.path("secret")).error().code, ErrorCode::permission_denied);
  EXPECT_EQ(open_as(kStranger, folder.path("closed/open")).error().code, ErrorCode::permission_denied);
  EXPECT_EQ(open_as(kStranger, folder.path("shared")).error().code, ErrorCode::permission_denied);
  EXPECT_TRUE(open_as(kStranger, folder.path("shared"), {4711}).ok());
  EXPECT_TRUE(open_as(kStranger, folder.path("theirs")).ok());
  EXPECT_TRUE(open_as(kStranger, "/etc/passwd").ok());
  EXPECT_EQ(open_as(kStranger, "relative").error().code, ErrorCode::not_found);
  // The thread alone was somebody else.
  EXPECT_EQ(file_user_here(), 0U);
  EXPECT_TRUE(open_foreign_file({.path = folder.path("secret")}).ok());
}

TEST(ForeignFile, LeavesTheProcessDumpable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
  EXPECT_TRUE(open_as(kStranger, "/etc/passwd").ok());
  EXPECT_EQ(::prctl(PR_GET_DUMPABLE), 1);
}

TEST(ForeignFile, HasTheOwnerWhoAloneCouldWriteIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "files can be given away by root only";
  const ScratchFolder folder;
  folder.run(
      "touch roots theirs open shared && chmod 644 * && chown 61001 theirs && chmod 666 open && chgrp 4711 "
      "shared && chmod 664 shared");
  const auto owner = [&](const char* name) { return open_foreign_file({.path = folder.path(name)})->owner; };
  EXPECT_EQ(owner("roots"), 0U);
  EXPECT_EQ(owner("theirs"), kStranger);
  EXPECT_EQ(owner("open"), std::nullopt);
  EXPECT_EQ(owner("shared"), std::nullopt);
}

}  // namespace
}  // namespace ddprof
