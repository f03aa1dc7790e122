#include "process/file_provider.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/unique_fd.hpp"

namespace ddprof {

namespace {

TEST(ProcessUser, IsTheOneWhoOpensFiles) {
  const auto user =
      parse_process_user("Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nNSpid:\t77\t12\n");
  ASSERT_TRUE(user.has_value());
  EXPECT_EQ(user->rights, (UserRights{4, 8, {9, 10}}));
  EXPECT_EQ(user->inner_pid, 12);
  EXPECT_FALSE(parse_process_user("Name:\tx\nUid:\t1\n").has_value());
}

TEST(ProcessUser, IsFoundForALivingProcess) {
  const Pid self{static_cast<Pid>(::getpid())};
  EXPECT_EQ(read_process_user(self)->rights.user, ::geteuid());
  EXPECT_EQ(find_user_of(self), ::geteuid());
  EXPECT_FALSE(find_user_of(Pid{0x7ffffff0}).has_value());
}

TEST(ProcessUser, HasTheNumberThatItsProcessHasInItsOwnNamespace) {
  const Pid self{static_cast<Pid>(::getpid())};
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    pid_t first = ::unshare(CLONE_NEWPID) == 0 ? ::fork() : -1;
    while (first == 0) ::pause();
    [[maybe_unused]] const ssize_t sent = ::write(writer.get(), &first, sizeof first);
    while (true) ::pause();
  }
  pid_t first = -1;
  ASSERT_EQ(::read(reader.get(), &first, sizeof first), static_cast<ssize_t>(sizeof first));
  const auto user = first > 0 ? read_process_user(Pid{first}) : std::nullopt;
  if (first > 0) ::kill(first, SIGKILL);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(read_process_user(self)->inner_pid, 0);
  if (first <= 0) GTEST_SKIP() << "only root may make a namespace";
  ASSERT_TRUE(user);
  EXPECT_EQ(user->inner_pid, 1);
}

TEST(ProcessUser, NamesPathsWithTheRightsOfWhoWroteTheFile) {
  const UserRights alice{1001, 1001, {50}};
  const UserRights root{0, 0, {}};
  EXPECT_EQ(rights_of_writer(0, alice), std::nullopt);
  EXPECT_EQ(rights_of_writer(1001, alice), alice);
  // Root, or another user, runs what she wrote; or it is not known who ran it.
  EXPECT_EQ(rights_of_writer(1001, root), rights_of_user(1001));
  EXPECT_EQ(rights_of_writer(1001, std::nullopt), rights_of_user(1001));
  // Who wrote it is not known: no rights, but those of a user who runs it.
  EXPECT_EQ(rights_of_writer(std::nullopt, alice), alice);
  EXPECT_EQ(rights_of_writer(std::nullopt, root), rights_of_user(kNoGroup));
}

TEST(TargetRoots, AreNoneForAProcessThatSeesWhatWeSee) {
  TargetRoots roots;
  EXPECT_EQ(roots.find_or_open(Pid{::getpid()}).value(), nullptr);
  EXPECT_TRUE(sees_our_root(Pid{::getpid()}));
  EXPECT_FALSE(roots.find_or_open(Pid{0x7ffffff0}));  // gone: what it saw is not known
  EXPECT_FALSE(sees_our_root(Pid{0x7ffffff0}));
}

TEST(TargetRoots, StayOpenWhenTheProcessHasEnded) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may change its root";
  const std::string folder = testing::TempDir() + "target_roots_test_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder + "/inside");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_jailed = ::chroot(folder.c_str()) == 0;
    if (!is_jailed || ::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  TargetRoots roots;
  const auto root = roots.find_or_open(Pid{child}).value();
  EXPECT_EQ(roots.find_or_open(Pid{child}).value(), root);
  EXPECT_FALSE(sees_our_root(Pid{child}));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_NE(root, nullptr);
  EXPECT_TRUE(std::filesystem::exists(root->path() + "/inside"));
  std::filesystem::remove_all(folder);
  ::close(ready[0]);
  ::close(ready[1]);
}

const Pid kSelf{static_cast<Pid>(::getpid())};

TEST(JitFile, KnowsTheNamesOfJitdumps) {
  EXPECT_TRUE(is_jit_dump_path("/home/me/.debug/jit/jit-1234.dump"));
  EXPECT_TRUE(is_jit_dump_path("jit-0.dump"));
  for (const char* path : {"/tmp/jit-.dump", "/tmp/jit-12x.dump", "/tmp/ajit-1.dump", "/tmp/jit-1.dump2",
                           "/tmp/jit-1.dump/x", "/jit-.dum", "jit-dump", ""}) {
    EXPECT_FALSE(is_jit_dump_path(path)) << path;
  }
}

class PerfMapFile : public testing::Test {
 protected:
  void TearDown() override { ::unlink(path_.c_str()); }
  PatientOpener opener{std::chrono::minutes(5)};
  std::string path_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
};

TEST_F(PerfMapFile, IsReadWhereTheProcessWritesIt) {
  EXPECT_EQ(JitFile::open_jit_names(opener, kSelf).error().code, ErrorCode::not_found);
  std::ofstream(path_) << "1000 10 function\n";
  const auto file = JitFile::open_jit_names(opener, kSelf);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->read_all(100).value(), "1000 10 function\n");
  EXPECT_EQ(file->read_all(10).error().code, ErrorCode::exhausted);
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_EQ(file->size().value(), 21U);
  std::array<std::byte, 100> bytes;
  EXPECT_EQ(file->read(17, bytes).value(), 4U);
}

TEST_F(PerfMapFile, IsRefusedWhenItIsALinkAFifoOrOfAnotherUser) {
  ASSERT_EQ(::symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_EQ(JitFile::open_jit_names(opener, kSelf).error().code, ErrorCode::unsupported);
  ::unlink(path_.c_str());
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(JitFile::open_jit_names(opener, kSelf).error().code, ErrorCode::unsupported);
  ::unlink(path_.c_str());
  std::ofstream(path_) << "1000 10 function\n";
  if (::chown(path_.c_str(), 12345, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "files can be given away by root only";
  const auto file = JitFile::open_jit_names(opener, kSelf);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::permission_denied);
  EXPECT_NE(file.error().message.find("belongs to user 12345"), std::string::npos) << file.error().message;
}

TEST(JitDumpFile, StaysReadableWhenItsNameIsGone) {
  PatientOpener opener(std::chrono::minutes(5));
  const std::string path = testing::TempDir() + "jit-" + std::to_string(::getpid()) + ".dump";
  std::ofstream(path) << "dump";
  const auto absolute = std::filesystem::absolute(path).string();
  const auto file = JitFile::open_dump(opener, {kSelf, {0x1000}, {0x2000}, {.path = absolute}});
  ASSERT_TRUE(file.ok()) << file.error().message;
  ::unlink(path.c_str());
  EXPECT_EQ(file->read_all(100).value(), "dump");
  EXPECT_EQ(JitFile::open_dump(opener, {kSelf, {0x1000}, {0x2000}, {.path = absolute}}).error().code,
            ErrorCode::not_found);
}

}  // namespace

}  // namespace ddprof
