// vdso_caller SECONDS: spends its time in the kernel's shared object, which has no file on disk.

#include "burn.h"

NOINLINE uint64_t ask_for_the_time(int times) {
  uint64_t sum = 0;
  for (int i = 0; i < times; ++i) sum += clock_ns(CLOCK_MONOTONIC);
  KEEP_FRAME();
  return sum;
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  uint64_t sum = 0;
  while (thread_cpu_ns() < total) sum += ask_for_the_time(1000);
  return sum == 0;
}
