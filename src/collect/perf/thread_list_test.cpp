#include "collect/perf/thread_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ddprof {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

TEST(ThreadList, HasTheCaller) {
  EXPECT_THAT(list_threads(Pid{::getpid()}), Contains(Tid{::gettid()}));
  EXPECT_TRUE(is_alive(Tid{::gettid()}));
}

TEST(ThreadList, IsEmptyForAProcessThatIsGoneAndAZombieIsNotAlive) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(is_alive(Tid{child}));
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(list_threads(Pid{child}), IsEmpty());
  EXPECT_FALSE(is_alive(Tid{child}));
}

}  // namespace
}  // namespace ddprof
