// A server under load: answers every line on a Unix socket after some work, and knows every signal that it
// got.
//   server SOCKET [MICROSECONDS OF WORK]
// "run COMMAND" runs a command before it answers. "quit" ends it with status 42; its last line says how many
// requests it answered, which signals it got, and its CPU time.
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals_got;
static volatile unsigned long sink;

static void count_signal(int signal) {
  (void)signal;
  ++signals_got;
}

static double cpu_seconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static void serve(double seconds) {
  double end = cpu_seconds() + seconds;
  while (cpu_seconds() < end)
    for (unsigned long i = 0; i < 1000; ++i) sink += i * 2654435761UL;
}

static int listen_at(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(fd, (struct sockaddr*)&address, sizeof address) != 0 || listen(fd, 16) != 0) {
    perror(path);
    exit(1);
  }
  return fd;
}

int main(int argc, char** argv) {
  double work = argc > 2 ? atof(argv[2]) / 1e6 : 200e-6;
  for (int signal = 1; signal < 32; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) {
      struct sigaction action = {.sa_handler = count_signal};
      sigaction(signal, &action, NULL);
    }
  int listener = listen_at(argv[1]);
  puts("ready");
  fflush(stdout);
  int client = accept(listener, NULL, NULL);
  FILE* in = fdopen(client, "r");
  char line[256];
  unsigned long answered = 0;
  while (fgets(line, sizeof line, in) != NULL && strcmp(line, "quit\n") != 0) {
    if (strncmp(line, "run ", 4) == 0) {
      sig_atomic_t before = signals_got;
      if (system(line + 4) != 0) return 1;
      signals_got = before;  // SIGCHLD of its own making
    }
    serve(work);
    if (write(client, line, strlen(line)) < 0) return 1;
    ++answered;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%lu answered, %d signals, %.6f s\n", answered, (int)signals_got,
         (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
             (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
  return 42;
}
