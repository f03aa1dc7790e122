#include "runtime/detached_process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

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
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
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
  ::pthread_sigmask(SIG_SETMASK, &all, &mask);
  struct sigaction tell {};  // where it is ignored no signal would come
  struct sigaction disposition {};
  tell.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &tell, &disposition);
  pid_t child = ::fork();
  if (child > 0) live_as_init(child, all);
  // The child, or nothing: then we reap nothing, but profile.
  ::sigaction(SIGCHLD, &disposition, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

namespace {

// fork() with another signal at the end, or with none: the target may have SIGCHLD blocked, and would find it
// pending after exec.
pid_t fork_signalling(int signal) {
  return static_cast<pid_t>(::syscall(SYS_clone, signal, nullptr, nullptr, nullptr, nullptr));
}

constexpr int kNoSignal = 0;

// Of the program that became us by exec.
bool has_children() {
  siginfo_t ended{};
  return ::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

void wait_for_end(pid_t child) {
  while (::waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
  }
}

// While SIGCHLD is ignored an ended child is forgotten at once: no zombie, no signal, no usage. For who has
// no other children: those would be forgotten too.
class ForgottenChildren {
 public:
  ForgottenChildren() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGCHLD, &ignore, &before_);
  }
  ~ForgottenChildren() { ::sigaction(SIGCHLD, &before_, nullptr); }
  ForgottenChildren(const ForgottenChildren&) = delete;
  ForgottenChildren& operator=(const ForgottenChildren&) = delete;

 private:
  struct sigaction before_ {};
};

// The child ends at once, and so the grandchild's parent is init.
DetachedProcess fork_twice(int signal_of_child, const std::function<void()>& life) {
  pid_t child = fork_signalling(signal_of_child);
  if (child == 0) {
    if (fork_signalling(kNoSignal) == 0) life();
    std::_Exit(0);
  }
  if (child > 0) wait_for_end(child);
  return {.silent_child = child < 0 ? -1 : 0};
}

}  // namespace

DetachedProcess start_detached(const std::function<void()>& life) {
  if (adopts_orphans()) {
    pid_t child = fork_signalling(kNoSignal);
    if (child == 0) life();
    return {.silent_child = child};
  }
  if (has_children()) return fork_twice(kNoSignal, life);
  ForgottenChildren forgotten;
  return fork_twice(SIGCHLD, life);
}

bool run_detached(const std::function<void()>& life, const std::function<bool()>& await_end) {
  if (!adopts_orphans()) {
    const bool is_started = start_detached(life).silent_child >= 0;
    if (is_started) await_end();
    return is_started;
  }
  std::optional<ForgottenChildren> forgotten;
  if (!has_children()) forgotten.emplace();
  const pid_t child = fork_signalling(forgotten ? SIGCHLD : kNoSignal);
  if (child == 0) life();
  if (child > 0 && await_end()) wait_for_end(child);
  return child > 0;
}

void end_silent_child(const DetachedProcess& process) {
  if (process.silent_child <= 0) return;
  ::kill(process.silent_child, SIGKILL);
  // One that hangs in a file system ends when that is back: nothing waits for it.
  constexpr auto kPatience = std::chrono::milliseconds(200), kPause = std::chrono::milliseconds(1);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(process.silent_child, nullptr, __WALL | WNOHANG) == 0 &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kPause);
}

}  // namespace ddprof
