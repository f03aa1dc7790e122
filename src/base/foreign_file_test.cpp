#include "base/foreign_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
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
  // The thread alone was another user.
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

using std::chrono::milliseconds;

constexpr milliseconds kForever = std::chrono::minutes(5);
constexpr std::uint32_t kAlice = 1001;
constexpr std::uint32_t kBob = 1002;

// Without a mount table, so that a folder stands for a file system.
FileRequest request_of(std::string path, std::uint32_t user = kAlice) {
  FileRequest request{.path = std::move(path)};
  request.mounts = "/nonexistent";
  request.user = user;
  return request;
}

// A file system whose /dead/ part hangs until the test lets it go.
class HangingFiles {
 public:
  ~HangingFiles() { gate_.set_value(); }
  PatientOpener::Open open() {
    return [released = released_, calls = calls_](const FileRequest& request) -> Result<ForeignFile> {
      ++*calls;
      if (request.path.starts_with("/dead/")) released.wait();
      return ForeignFile{.fd = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))};
    };
  }
  [[nodiscard]] int calls() const { return *calls_; }

 private:
  std::promise<void> gate_;
  std::shared_future<void> released_ = gate_.get_future().share();
  std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

TEST(PatientOpener, OpensAFileThatAnswers) {
  const ScratchFolder folder;
  folder.write("file", "content");
  PatientOpener opener(kForever);
  EXPECT_TRUE(opener.open({.path = folder.path("file")}).ok());
  EXPECT_TRUE(opener.open({.path = "/file", .root = folder.path()}).ok());
  EXPECT_EQ(opener.open({.path = folder.path("absent")}).error().code, ErrorCode::not_found);
  EXPECT_TRUE(opener.hung_places().empty());
}

TEST(PatientOpener, GivesUpOnAFileSystemThatHangsAndLeavesItAlone) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  EXPECT_EQ(opener.open(request_of("/dead/one")).error().code, ErrorCode::exhausted);
  ASSERT_EQ(opener.hung_places(), (std::vector<PatientOpener::HungPlace>{{"/dead/", kAlice}}));
  EXPECT_EQ(opener.open(request_of("/dead/two")).error().code, ErrorCode::exhausted);
  EXPECT_LE(files.calls(), 1);  // none when the thread for it did not even start in that time
}

TEST(PatientOpener, GoesOnWithOtherFileSystems) {
  HangingFiles files;
  PatientOpener opener(milliseconds(200), files.open());
  EXPECT_FALSE(opener.open(request_of("/dead/one")).ok());
  // With a patience that a busy machine cannot exceed.
  PatientOpener patient(kForever, files.open());
  EXPECT_TRUE(patient.open(request_of("/deadly/one")).ok());
}

TEST(PatientOpener, HangsForAUserABoundedNumberOfTimes) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(opener.open(request_of("/dead/" + std::to_string(i) + "/file")).ok());
  EXPECT_EQ(opener.hung_places().size(), PatientOpener::kMaxHungCallsOfUser);
}

TEST(PatientOpener, GoesOnForOtherUsersOnTheSameFileSystem) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1000), files.open());
  for (std::size_t i = 0; i < PatientOpener::kMaxHungCallsOfUser; ++i)
    EXPECT_FALSE(opener.open(request_of("/dead/" + std::to_string(i) + "/file")).ok());
  EXPECT_EQ(opener.open(request_of("/alive/file")).error().code, ErrorCode::exhausted);
  EXPECT_TRUE(opener.open(request_of("/alive/file", kBob)).ok());
  EXPECT_TRUE(opener.open(request_of("/alive/file", 0)).ok());
}

TEST(PatientOpener, HangsABoundedNumberOfTimes) {
  HangingFiles files;
  PatientOpener opener(milliseconds(1), files.open());
  for (std::uint32_t user = 1; user < 30; ++user)
    for (int i = 0; i < 8; ++i)
      EXPECT_FALSE(opener.open(request_of("/dead/" + std::to_string(i) + "/file", user)));
  EXPECT_EQ(opener.hung_places().size(), PatientOpener::kMaxHungCalls);
}

TEST(PatientOpener, KnowsWhichMountAPathIsOnAndWhoAnswersForIt) {
  constexpr std::string_view table =
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "23 22 0:50 / /net rw - nfs server:/ rw\n"
      "24 23 0:51 / /net/deeper rw shared:1 - nfs server:/deeper rw\n"
      "25 22 0:52 / /home/bob/mnt rw,nosuid - fuse.sshfs x rw,user_id=1002,group_id=1002\n"
      "26 22 0:53 / /mnt/pool rw,nosuid - fuse.mergerfs x rw,user_id=0,group_id=0\n"
      "broken\n";
  using Place = PatientOpener::HungPlace;
  EXPECT_EQ(place_of(request_of("/net/a/b"), table), (Place{"/net", kAlice}));
  EXPECT_EQ(place_of(request_of("/net/deeper/b"), table), (Place{"/net/deeper", kAlice}));
  EXPECT_EQ(place_of(request_of("/network/a"), table), (Place{"/network/", kAlice}));
  EXPECT_EQ(place_of(request_of("/usr/bin/x"), ""), (Place{"/usr/bin/", kAlice}));
  EXPECT_EQ(place_of(request_of("/home/bob/mnt/x", 0), table), (Place{"/home/bob/mnt", kBob}));
  EXPECT_EQ(place_of(request_of("/mnt/pool/x"), table), (Place{"/mnt/pool", kAlice}));
  FileRequest link = request_of("/net/map_files/1-2");
  link.links = FileRequest::Links::of_kernel;
  EXPECT_EQ(place_of(link, table), (Place{"/net/map_files/1-2", kAlice}));
  FileRequest inside = request_of("/net/a/b");
  inside.root = "/proc/7/root";
  EXPECT_EQ(place_of(inside, table), (Place{"/proc/7/root/net", kAlice}));
}

}  // namespace

}  // namespace ddprof
