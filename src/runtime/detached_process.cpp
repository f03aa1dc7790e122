#include "runtime/detached_process.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "runtime/orphans.hpp"

namespace ddprof {

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

// The child ends at once, and so the grandchild is nobody's but init's.
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
  // One that hangs in a file system ends when that is back: nobody waits for it.
  constexpr auto kPatience = std::chrono::milliseconds(200), kPause = std::chrono::milliseconds(1);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (::waitpid(process.silent_child, nullptr, __WALL | WNOHANG) == 0 &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kPause);
}

}  // namespace ddprof
