// fork_storm PROCESSES MILLISECONDS [PARALLEL]: processes that each burn MILLISECONDS of CPU time and end,
// PARALLEL at a time; prints what the kernel charged.

#include <sys/wait.h>
#include <unistd.h>

#include "accounting.h"

NOINLINE void burn_in_child(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  const struct Account before = account_now();
  const int processes = atoi(argument(argc, argv, 1, "2000"));
  const uint64_t nanoseconds = (uint64_t)(atof(argument(argc, argv, 2, "1")) * 1e6);
  const int parallel = atoi(argument(argc, argv, 3, "2"));
  int running = 0;
  for (int i = 0; i < processes; ++i) {
    if (running == parallel && wait(NULL) > 0) --running;
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      burn_in_child(nanoseconds);
      _exit(0);
    }
    ++running;
  }
  while (wait(NULL) > 0) {
  }
  print_account_since(before);
  return 0;
}
