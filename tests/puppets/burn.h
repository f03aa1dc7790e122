#pragma once

// What all puppets share: spending an exact amount of CPU time. The clock is the thread's CPU clock, so the
// truth of a puppet does not depend on how busy the machine is.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

// Keeps the caller's frame: a call that is not the last thing its caller does cannot become a jump.
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")
// The same, with a number that keeps the compiler from merging two functions of equal code into one.
#define KEEP_FRAME_APART(number) __asm__ volatile("" ::"i"(number) : "memory")

ALWAYS_INLINE uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

ALWAYS_INLINE uint64_t thread_cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// A few microseconds of arithmetic: reading the CPU clock is a system call, and must stay a small part of the
// burning.
ALWAYS_INLINE void spin_briefly(void) {
  uint64_t state = 1;
  for (int i = 0; i < 8000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(state));
  }
}

// Inlined into its caller on purpose: the caller's own name is then the hot function.
ALWAYS_INLINE void burn_until(uint64_t deadline_ns) {
  do {
    spin_briefly();
  } while (thread_cpu_ns() < deadline_ns);
}

ALWAYS_INLINE void burn_ns(uint64_t nanoseconds) { burn_until(thread_cpu_ns() + nanoseconds); }

ALWAYS_INLINE uint64_t seconds_to_ns(const char* text) { return (uint64_t)(strtod(text, NULL) * 1e9); }

// The n-th argument, or a default.
ALWAYS_INLINE const char* argument(int argc, char** argv, int n, const char* fallback) {
  return n < argc ? argv[n] : fallback;
}

// A small generator with a fixed seed: the same run each time.
ALWAYS_INLINE uint32_t next_random(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}
