// master: an idle process with busy children, as PostgreSQL has: two workers that were forked without exec,
// each with a second thread, and a child of the first worker. Every thread burns a fifth of a core. Prints a
// JSON line with its own PID and those of the others when all run. SIGUSR1 makes it fork one worker more, and
// print another line. All end when standard input does.

#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "burn.h"

struct Shared {
  _Atomic int running;  // busy threads of all processes
  pid_t grandchild;
};

static struct Shared* shared;

NOINLINE void work_in_worker(void) {
  const struct timespec pause = {0, 8000000};
  ++shared->running;
  for (;;) {
    burn_ns(2000000);
    nanosleep(&pause, NULL);
  }
}

NOINLINE void work_in_grandchild(void) {
  const struct timespec pause = {0, 8000000};
  ++shared->running;
  for (;;) {
    burn_ns(2000000);
    nanosleep(&pause, NULL);
    KEEP_FRAME_APART(1);
  }
}

static void* second_thread(void* unused) {
  work_in_worker();
  return unused;
}

static pid_t fork_together(void) {
  const pid_t child = fork();
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return child;
}

static pid_t start_worker(int has_child) {
  const pid_t worker = fork_together();
  if (worker != 0) return worker;
  const pid_t child = has_child ? fork_together() : -1;
  if (child == 0) work_in_grandchild();
  if (child > 0) shared->grandchild = child;
  pthread_t thread;
  if (pthread_create(&thread, NULL, second_thread, NULL) != 0) _exit(1);
  work_in_worker();
  return 0;
}

static void await_running(int count) {
  const struct timespec moment = {0, 1000000};
  while (shared->running < count) nanosleep(&moment, NULL);
}

int main(void) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  if (shared == MAP_FAILED || sigprocmask(SIG_BLOCK, &signals, NULL) != 0) return 1;
  const pid_t first = start_worker(1), second = start_worker(0);
  int count = 5;
  await_running(count);
  printf("{\"pid\": %d, \"workers\": [%d, %d], \"grandchild\": %d}\n", getpid(), first, second,
         shared->grandchild);
  fflush(stdout);
  struct pollfd polled[] = {{STDIN_FILENO, POLLIN, 0}, {signalfd(-1, &signals, SFD_CLOEXEC), POLLIN, 0}};
  for (;;) {
    if (poll(polled, 2, -1) < 0) return 1;
    char byte;
    if (polled[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) return 0;
    struct signalfd_siginfo info;
    if (polled[1].revents == 0 || read(polled[1].fd, &info, sizeof info) != sizeof info) continue;
    const pid_t late = start_worker(0);
    await_running(count += 2);
    printf("{\"late\": %d}\n", late);
    fflush(stdout);
  }
}
