// run_pages FILE...: calls what lies at offset 4096 of each file, in turn and for ever, as code of that file.
// With "-" it calls the same from anonymous memory, as code of a JIT compiler. Says "ready" when all is
// mapped.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096 };

// mov $1000000, %ecx; dec %ecx; jnz; ret
static const unsigned char kCountDown[] = {0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

static void* map_code(const char* path) {
  if (strcmp(path, "-") == 0) {
    void* page = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, kCountDown, sizeof kCountDown);
    mprotect(page, kPage, PROT_READ | PROT_EXEC);
    return page;
  }
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  void* page = mmap(NULL, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, kPage);
  close(file);
  return page;
}

int main(int argc, char** argv) {
  void** pages = calloc((size_t)argc, sizeof *pages);
  for (int i = 1; i < argc; ++i) {
    pages[i] = map_code(argv[i]);
    if (pages[i] == MAP_FAILED) return perror(argv[i]), 1;
  }
  puts("ready");
  fflush(stdout);
  while (argc > 1) {
    for (int i = 1; i < argc; ++i) ((void (*)(void))pages[i])();
  }
  return 0;
}
