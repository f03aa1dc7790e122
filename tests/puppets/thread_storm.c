// thread_storm THREADS [PARALLEL] [MICROSECONDS]: threads that burn MICROSECONDS of CPU time and end,
// PARALLEL at a time; prints what the kernel charged.

#define _GNU_SOURCE
#include <pthread.h>

#include "accounting.h"

static uint64_t nanoseconds;

NOINLINE void burn_in_thread(void) {
  burn_ns(nanoseconds);
  KEEP_FRAME();
}

static void* run(void* unused) {
  if (nanoseconds > 0) burn_in_thread();
  return unused;
}

int main(int argc, char** argv) {
  const struct Account before = account_now();
  const int threads = atoi(argument(argc, argv, 1, "40000"));
  const int parallel = atoi(argument(argc, argv, 2, "8"));
  nanoseconds = strtoull(argument(argc, argv, 3, "50"), NULL, 10) * 1000;
  pthread_t* handles = calloc((size_t)parallel, sizeof(pthread_t));
  for (int started = 0; started < threads;) {
    int batch = 0;
    for (; batch < parallel && started < threads; ++batch, ++started) {
      if (pthread_create(&handles[batch], NULL, run, NULL) != 0) return 1;
    }
    while (batch > 0) pthread_join(handles[--batch], NULL);
  }
  free(handles);
  print_account_since(before);
  return 0;
}
