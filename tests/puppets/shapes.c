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

// clang-format off
#define FLAT(number) __attribute__((noinline)) static void flat_##number(void) { WORK(20000 + (number)) }
#define TEN(of, digit) of(digit##0) of(digit##1) of(digit##2) of(digit##3) of(digit##4) of(digit##5) of(digit##6) of(digit##7) of(digit##8) of(digit##9)
#define FORTY(of) TEN(of, 1) TEN(of, 2) TEN(of, 3) TEN(of, 4)
#define CALL(number) flat_##number();
// clang-format on

FORTY(FLAT)

__attribute__((noinline)) static void flat_round(void) {
  FORTY(CALL)
  sink++;
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
