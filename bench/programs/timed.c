// timed FILE PROGRAM ARGUMENTS...: runs the program and writes into FILE, as JSON, how long it took and what
// the kernel charged for it and for this program. Run under a profiler it tells what the target cost without
// the profiler's own start and end.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accounting.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const uint64_t start = clock_ns(CLOCK_MONOTONIC);
  const struct Account before = account_now();
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    execv(argv[2], argv + 2);
    _exit(127);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  const uint64_t wall = clock_ns(CLOCK_MONOTONIC) - start;
  const struct Account after = account_now();
  FILE* file = fopen(argv[1], "w");
  if (file == NULL) return 1;
  fprintf(file, "{\"wall_ns\": %llu, \"target_ns\": %llu, \"self_ns\": %llu}\n", (unsigned long long)wall,
          (unsigned long long)(after.children_ns - before.children_ns),
          (unsigned long long)(after.self_ns - before.self_ns));
  fclose(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
