// hanging_context FILE: publishes a process context (OTEP 4719) whose payload is in a page of FILE that it
// has given back, so that who reads it waits for the file system of FILE. Says "ready" when it has, and
// burns.

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"

int main(int argc, char** argv) {
  struct {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t published_at;
    const void* payload;
  } * head;
  const int file = open(argument(argc, argv, 1, ""), O_RDONLY | O_CLOEXEC);
  const int memory = memfd_create("OTEL_CTX", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, sizeof *head) != 0) return perror("memfd_create"), 1;
  void* payload = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  head = mmap(NULL, sizeof *head, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory, 0);
  if (payload == MAP_FAILED || head == MAP_FAILED) return perror("mmap"), 1;
  head->version = 2;
  head->payload_size = 100;
  head->payload = payload;
  memcpy(head->signature, "OTEL_CTX", 8);
  __sync_synchronize();
  *(volatile uint64_t*)&head->published_at = clock_ns(CLOCK_BOOTTIME);
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) return 1;
  while (1) burn_ns(1000000);
}
