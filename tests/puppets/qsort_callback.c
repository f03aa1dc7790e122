// qsort_callback SECONDS: all the time is spent in a comparison function that libc's qsort calls.

#include "burn.h"

static const int kValues[] = {5, 3, 9, 1, 7, 2, 8, 4, 6, 0};

NOINLINE int compare_slowly(const void* left, const void* right) {
  burn_ns(100000);
  KEEP_FRAME();
  return *(const int*)left - *(const int*)right;
}

NOINLINE void sort_once(void) {
  int values[sizeof kValues / sizeof *kValues];
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i) values[i] = kValues[i];
  qsort(values, sizeof values / sizeof *values, sizeof *values, compare_slowly);
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  while (thread_cpu_ns() < total) sort_once();
  return 0;
}
