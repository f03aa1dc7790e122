// Prints the monotonic clock, in nanoseconds, as the first thing it does.

#include "burn.h"

int main(void) {
  printf("%llu\n", (unsigned long long)clock_ns(CLOCK_MONOTONIC));
  return 0;
}
