// shapes SHAPE SECONDS: CPU time in a shape that is known: hot, flat, recursive or library. Every function
// works for a while on its own, so that no helper is hotter than what calls it.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t sink;

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define WORK(rounds)                                                                     \
  uint64_t state = sink | 1;                                                             \
  for (int i = 0; i < (rounds); i++) state = state * 6364136223846793005u + 1442695040u; \
  sink = state;

__attribute__((noinline)) static void hot_function(void) { WORK(900000) }
__attribute__((noinline)) static void cold_function(void) { WORK(100000) }

__attribute__((noinline)) static void handle_request(void) {
  hot_function();
  cold_function();
}

#define FLAT(number) \
  __attribute__((noinline)) static void flat_##number(void) { WORK(20000 + (number)) }
#define TEN(digit)                                                                                         \
  FLAT(digit##0)                                                                                           \
  FLAT(digit##1) FLAT(digit##2) FLAT(digit##3) FLAT(digit##4) FLAT(digit##5) FLAT(digit##6) FLAT(digit##7) \
      FLAT(digit##8) FLAT(digit##9)
TEN(1)
TEN(2) TEN(3) TEN(4)
#define CALL(number) flat_##number();
#define CALL_TEN(digit)                                                                                    \
  CALL(digit##0)                                                                                           \
  CALL(digit##1) CALL(digit##2) CALL(digit##3) CALL(digit##4) CALL(digit##5) CALL(digit##6) CALL(digit##7) \
      CALL(digit##8) CALL(digit##9)

    __attribute__((noinline)) static void flat_round(void) {
  CALL_TEN(1) CALL_TEN(2) CALL_TEN(3) CALL_TEN(4) sink++;
}

__attribute__((noinline)) static uint64_t recurse(int depth) {
  WORK(3000)
  return depth == 0 ? sink : recurse(depth - 1) + recurse(depth - 2 < 0 ? 0 : depth - 2);
}

__attribute__((noinline)) static void fill_buffers(char* buffer, size_t size) {
  for (int i = 0; i < 40; i++) {
    memset(buffer, i, size);
    __asm__ volatile("" : : "r"(buffer) : "memory");
  }
}

int main(int argc, char** argv) {
  const char* shape = argc > 1 ? argv[1] : "hot";
  double seconds = argc > 2 ? atof(argv[2]) : 1;
  size_t size = 1 << 20;
  char* buffer = malloc(size);
  while (cpu_seconds() < seconds) {
    if (strcmp(shape, "hot") == 0) handle_request();
    if (strcmp(shape, "flat") == 0) flat_round();
    if (strcmp(shape, "recursive") == 0) sink += recurse(8);
    if (strcmp(shape, "library") == 0) fill_buffers(buffer, size);
  }
  free(buffer);
  return 0;
}
