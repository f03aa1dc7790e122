#include "process/target_roots.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace ddprof {
namespace {

TEST(TargetRoots, AreNoneForAProcessThatSeesWhatWeSee) {
  TargetRoots roots;
  EXPECT_EQ(roots.find_or_open(Pid{::getpid()}).value(), nullptr);
  EXPECT_TRUE(sees_our_root(Pid{::getpid()}));
  EXPECT_FALSE(roots.find_or_open(Pid{0x7ffffff0}));  // gone: nobody knows what it saw
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

}  // namespace
}  // namespace ddprof
