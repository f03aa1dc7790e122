#include "runtime/orphans.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

namespace ddprof {

namespace {

// The status of `child`, if it was among those that ended.
std::optional<int> reap_all(pid_t child) {
  std::optional<int> found;
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
    if (ended == child) found = status;
  }
  return found;
}

[[noreturn]] void end_as(int status) {
  if (!WIFSIGNALED(status)) std::_Exit(WEXITSTATUS(status));
  rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(WTERMSIG(status), SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::raise(WTERMSIG(status));
  std::_Exit(128 + WTERMSIG(status));  // init does not die of its own signals
}

[[noreturn]] void live_as_init(pid_t child, const sigset_t& all) {
  while (true) {
    siginfo_t info{};
    int signal = ::sigwaitinfo(&all, &info);
    // The terminal sends its signals to the child itself.
    if (signal > 0 && signal != SIGCHLD && info.si_code <= SI_USER) ::kill(child, signal);
    if (auto status = reap_all(child)) end_as(*status);
  }
}

}  // namespace

bool adopts_orphans() {
  int is_reaper = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &is_reaper, 0, 0, 0);
  return ::getpid() == 1 || is_reaper != 0;
}

void leave_orphans_behind() {
  if (!adopts_orphans()) return;
  sigset_t all{};
  sigset_t mask{};
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &mask);
  struct sigaction tell {};  // where it is ignored nobody would be told
  struct sigaction disposition {};
  tell.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &tell, &disposition);
  pid_t child = ::fork();
  if (child > 0) live_as_init(child, all);
  // The child, or nobody: then we reap nothing, but profile.
  ::sigaction(SIGCHLD, &disposition, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

}  // namespace ddprof
