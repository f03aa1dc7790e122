// split THREADS SECONDS: each thread spends exactly 70, 20 and 10 % of SECONDS of CPU time in three
// functions.
//
// The shares hold at every scale above a round: deadlines are absolute, so nothing is lost between rounds,
// and rounds have pseudo-random lengths, so that no sampling period can march in step with them.

#define _GNU_SOURCE
#include <pthread.h>

#include "burn.h"

NOINLINE void spend_70(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME_APART(70);
}

NOINLINE void spend_20(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME_APART(20);
}

NOINLINE void spend_10(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME_APART(10);
}

static uint64_t total_ns;

static void* spend(void* seed) {
  uint32_t state = (uint32_t)(uintptr_t)seed * 2654435761u + 1;
  const uint64_t start = thread_cpu_ns();
  uint64_t done = 0;
  while (done < total_ns) {
    uint64_t round = 40000000 + next_random(&state) % 60000000;
    if (round > total_ns - done) round = total_ns - done;
    spend_70(start + done + round * 7 / 10);
    spend_20(start + done + round * 9 / 10);
    spend_10(start + done + round);
    done += round;
  }
  return NULL;
}

int main(int argc, char** argv) {
  const long threads = atol(argument(argc, argv, 1, "1"));
  total_ns = seconds_to_ns(argument(argc, argv, 2, "1"));
  if (threads <= 1) {
    spend((void*)1);
    return 0;
  }
  pthread_t* handles = calloc((size_t)threads, sizeof(pthread_t));
  for (long i = 0; i < threads; ++i) {
    if (pthread_create(&handles[i], NULL, spend, (void*)(i + 1)) != 0) return 1;
  }
  for (long i = 0; i < threads; ++i) pthread_join(handles[i], NULL);
  free(handles);
  return 0;
}
