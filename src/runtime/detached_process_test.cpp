#include "runtime/detached_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

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

bool can_wait(int kinds) {
  siginfo_t ended{};
  return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | kinds) == 0;
}

// Starts one that ends when we want it to, and describes what the starter can see of it before and after.
std::string traces() {
  sigset_t child_ended{};
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_ended, nullptr);
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) return "no pipe";
  UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  DetachedProcess process = start_detached([&] {
    reader.reset();
    std::_Exit(0);
  });
  writer.reset();
  char byte = 0;
  ssize_t end_of_file = ::read(reader.get(), &byte, 1);
  sigset_t pending{};
  ::sigpending(&pending);
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  std::string text = end_of_file == 0 ? "" : "no end, ";
  if (can_wait(0)) text += "a child, ";
  if (::sigismember(&pending, SIGCHLD) == 1) text += "a signal, ";
  if (usage.ru_maxrss != 0) text += "usage, ";
  text += process.silent_child > 0 ? "a silent child" : "nothing";
  end_silent_child(process);
  return can_wait(__WALL) ? text + ", a zombie" : text;
}

TEST(DetachedProcess, LeavesNoTrace) { EXPECT_EQ(in_child(traces), "nothing"); }

TEST(DetachedProcess, IsASilentChildOfWhoAdoptsOrphans) {
  EXPECT_EQ(in_child([] {
              ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
              return traces();
            }),
            "a silent child");
}

TEST(DetachedProcess, DoesNotTakeAwayOtherChildren) {
  EXPECT_EQ(in_child([] {
              pid_t other = ::fork();
              if (other == 0) std::_Exit(7);
              start_detached([] { std::_Exit(0); });
              int status = 0;
              return ::waitpid(other, &status, 0) == other ? std::to_string(WEXITSTATUS(status)) : "lost";
            }),
            "7");
}

TEST(DetachedProcess, LeavesTheDispositionAsItWas) {
  EXPECT_EQ(in_child([] {
              struct sigaction action {};
              action.sa_handler = [](int) {};
              action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
              ::sigaction(SIGCHLD, &action, nullptr);
              start_detached([] { std::_Exit(0); });
              struct sigaction after {};
              ::sigaction(SIGCHLD, nullptr, &after);
              bool is_same = after.sa_handler == action.sa_handler &&
                             (after.sa_flags & (SA_RESTART | SA_NOCLDSTOP)) == action.sa_flags;
              return std::string(is_same ? "same" : "changed");
            }),
            "same");
}

}  // namespace

}  // namespace ddprof
