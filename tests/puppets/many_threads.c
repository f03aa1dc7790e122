// many_threads COUNT: threads that all burn CPU time, together about one core of it, until standard input
// ends or SIGTERM comes: each burns for a millisecond and sleeps for the turns of the others. Prints a JSON
// line with its PID and all thread ids when every thread runs. SIGUSR1 adds ten threads more, named late-N,
// and another line.

#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "burn.h"

struct Worker {
  const char* prefix;
  int number;
};

static sem_t started;
static pid_t ids[4096];

static int count;

NOINLINE void burn_forever(void) {
  const uint64_t turn = 1000000, others = turn * (uint64_t)(count - 1);
  const struct timespec pause = {(time_t)(others / 1000000000u), (long)(others % 1000000000u)};
  for (;;) {
    burn_ns(turn);
    nanosleep(&pause, NULL);
  }
}

static void* work(void* argument) {
  const struct Worker* worker = argument;
  char name[16];
  snprintf(name, sizeof name, "%s-%d", worker->prefix, worker->number);
  pthread_setname_np(pthread_self(), name);
  ids[worker->number] = gettid();
  sem_post(&started);
  burn_forever();
  return NULL;
}

static int start_threads(const char* prefix, int first, int more) {
  for (int i = first; i < first + more; ++i) {
    struct Worker* worker = malloc(sizeof *worker);
    *worker = (struct Worker){prefix, i};
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, worker) != 0) return -1;
  }
  for (int i = 0; i < more; ++i) sem_wait(&started);
  printf("{\"pid\": %d, \"tids\": [", getpid());
  for (int i = first; i < first + more; ++i) printf("%s%d", i == first ? "" : ", ", ids[i]);
  printf("]}\n");
  fflush(stdout);
  return first + more;
}

int main(int argc, char** argv) {
  count = atoi(argument(argc, argv, 1, "200"));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  sem_init(&started, 0, 0);
  int next = start_threads("worker", 0, count);
  if (next < 0) return 1;
  struct pollfd polled[] = {{STDIN_FILENO, POLLIN, 0}, {signalfd(-1, &signals, SFD_CLOEXEC), POLLIN, 0}};
  for (;;) {
    if (poll(polled, 2, -1) < 0) return 1;
    char byte;
    if (polled[0].revents != 0 && read(STDIN_FILENO, &byte, 1) <= 0) return 0;
    struct signalfd_siginfo info;
    if (polled[1].revents == 0 || read(polled[1].fd, &info, sizeof info) != sizeof info) continue;
    if (info.ssi_signo == SIGTERM) return 0;
    next = start_threads("late", next, 10);
    if (next < 0) return 1;
  }
}
