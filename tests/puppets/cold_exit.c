// cold_exit code N: exits with N. cold_exit signal N: dies by signal N. cold_exit stdin: ends when standard
// input does.

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "stdin") == 0) {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
  }
  if (argc != 3) return 2;
  const int number = atoi(argv[2]);
  if (strcmp(argv[1], "code") == 0) return number;
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(number, SIG_DFL);
  raise(number);
  return 3;
}
