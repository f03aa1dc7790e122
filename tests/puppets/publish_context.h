// Publishes a process context (OTEP 4719) of this payload, which stays where it is.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static inline void publish_context(const void* payload, uint32_t payload_size) {
  struct {
    char signature[8];
    uint32_t version, payload_size;
    uint64_t published_at;
    const void* payload;
  } * head;
  const int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof *head) != 0) abort();
  head = mmap(NULL, sizeof *head, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (head == MAP_FAILED) abort();
  close(fd);
  madvise(head, sizeof *head, MADV_DONTFORK);
  head->version = 2;
  head->payload_size = payload_size;
  head->payload = payload;
  memcpy(head->signature, "OTEL_CTX", 8);
  __sync_synchronize();
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  *(volatile uint64_t*)&head->published_at = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
