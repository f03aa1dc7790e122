// exec_chain MILLISECONDS [program arguments…]: burns under the name "before-exec", then runs the program in
// a child (named "forked" until its exec) and waits for it, then becomes the program itself. Without a
// program it burns and ends.

#define _GNU_SOURCE
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "burn.h"

NOINLINE void burn_before_exec(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  KEEP_FRAME_APART(1);
}

NOINLINE void burn_in_forked(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  KEEP_FRAME_APART(2);
}

int main(int argc, char** argv) {
  const uint64_t nanoseconds = strtoull(argument(argc, argv, 1, "100"), NULL, 10) * 1000000;
  prctl(PR_SET_NAME, "before-exec");
  burn_before_exec(nanoseconds);
  if (argc < 3) return 0;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    prctl(PR_SET_NAME, "forked");
    burn_in_forked(nanoseconds);
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  int status;
  waitpid(child, &status, 0);
  execvp(argv[2], argv + 2);
  return 127;
}
