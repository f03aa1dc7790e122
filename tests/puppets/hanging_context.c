// hanging_context FILE: publishes a process context (OTEP 4719) whose payload is in a page of FILE that it
// has given back, so that who reads it waits for the file system of FILE. Says "ready" when it has, and
// burns.

#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"
#include "publish_context.h"

int main(int argc, char** argv) {
  const int file = open(argument(argc, argv, 1, ""), O_RDONLY | O_CLOEXEC);
  void* payload = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  if (payload == MAP_FAILED) return perror("mmap"), 1;
  publish_context(payload, 100);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  while (1) burn_ns(1000000);
}
