// halves thread|process MILLISECONDS SECONDS [IDLE_SECONDS]: one task after the other, each of so many
// milliseconds of CPU time, half of them in first_half() and half in second_half(). Stays idle for a while
// before. On a busy machine it ends after five times so many seconds.

#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"

NOINLINE static void first_half(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  KEEP_FRAME();
}

NOINLINE static void second_half(uint64_t nanoseconds) {
  __asm__ volatile("nop");  // or the compiler makes one function of two
  burn_ns(nanoseconds);
  KEEP_FRAME();
}

static void* run_task(void* argument_of_thread) {
  const uint64_t half = *(const uint64_t*)argument_of_thread;
  first_half(half);
  second_half(half);
  return NULL;
}

int main(int argc, char** argv) {
  const int is_thread = strcmp(argument(argc, argv, 1, "thread"), "thread") == 0;
  const double milliseconds = atof(argument(argc, argv, 2, "16"));
  const double seconds = atof(argument(argc, argv, 3, "2"));
  uint64_t half = (uint64_t)(milliseconds * 5e5);
  sleep((unsigned)atoi(argument(argc, argv, 4, "0")));
  const time_t end = time(NULL) + (time_t)(5 * seconds);
  for (long left = (long)(seconds * 1e3 / milliseconds); left > 0 && time(NULL) < end; --left) {
    pthread_t thread;
    if (is_thread) {
      if (pthread_create(&thread, NULL, run_task, &half) != 0 || pthread_join(thread, NULL) != 0) return 1;
    } else if (fork() == 0) {
      run_task(&half);
      _exit(0);
    } else {
      wait(NULL);
    }
  }
  return 0;
}
