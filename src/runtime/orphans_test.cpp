#include "runtime/orphans.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>

#include <thread>

#include "runtime/in_child_fixture.hpp"

namespace ddprof {
namespace {

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

TEST(Orphans, AreAdoptedByReapersOnly) {
  EXPECT_EQ(in_child([] {
              std::string text = adopts_orphans() ? "yes" : "no";
              adopt_orphans();
              return text + (adopts_orphans() ? ", yes" : ", no");
            }),
            "no, yes");
}

TEST(Orphans, AreLeftToAParentThatEndsAsTheChildDoes) {
  EXPECT_EQ(in_child([]() -> std::string {
              adopt_orphans();
              pid_t before = ::getpid();
              leave_orphans_behind();
              if (::getppid() != before || adopts_orphans()) return "no other process";
              std::_Exit(7);
            }),
            "ended with status 1792");
  EXPECT_EQ(in_child([]() -> std::string {
              adopt_orphans();
              leave_orphans_behind();
              ::raise(SIGTERM);
              return "alive";
            }),
            "ended with status 15");
}

TEST(Orphans, LeaveNoZombie) {
  EXPECT_EQ(in_child([] {
              adopt_orphans();
              leave_orphans_behind();
              pid_t child = ::fork();
              if (child == 0) {
                pid_t orphan = ::fork();
                if (orphan == 0) std::_Exit(0);
                std::_Exit(0);
              }
              ::waitpid(child, nullptr, 0);
              // The parent is told of each; a zombie would stay in its list for ever.
              std::string path = "/proc/" + std::to_string(::getppid()) + "/task/" +
                                 std::to_string(::getppid()) + "/children";
              std::string children;
              for (int tries = 0; tries < 10000; ++tries) {
                std::ifstream file(path);
                std::getline(file, children);
                if (children == std::to_string(::getpid()) + " ") return std::string("none");
                std::this_thread::yield();
              }
              return "children: " + children;
            }),
            "none");
}

TEST(Orphans, DoNotKeepSignalsFromTheChild) {
  EXPECT_EQ(in_child([] {
              adopt_orphans();
              leave_orphans_behind();
              sigset_t hang_up{};
              ::sigemptyset(&hang_up);
              ::sigaddset(&hang_up, SIGHUP);
              ::sigprocmask(SIG_BLOCK, &hang_up, nullptr);
              ::kill(::getppid(), SIGHUP);
              int signal = 0;
              ::sigwait(&hang_up, &signal);
              return std::string(signal == SIGHUP ? "passed on" : "lost");
            }),
            "passed on");
}

}  // namespace
}  // namespace ddprof
