// jit SECONDS [map]: code written into executable memory at run time, without a file, symbols or unwind
// information, but with frame pointers, as most JIT compilers make it. It calls back into the program, which
// burns. Half of the time is spent in the generated code itself. map: names the code in /tmp/perf-PID.map.

#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "burn.h"

NOINLINE void called_back(void) {
  burn_ns(1000000);
  KEEP_FRAME();
}

#if defined(__x86_64__)
// void jitted(void (*callback)(void), unsigned long spins): spins, then calls back.
static const unsigned char kCode[] = {
    0x55,                    // push %rbp
    0x48, 0x89, 0xe5,        // mov  %rsp, %rbp
    0x48, 0x83, 0xec, 0x20,  // sub  $32, %rsp
    0x48, 0xff, 0xce,        // dec  %rsi
    0x75, 0xfb,              // jnz  back to dec
    0xff, 0xd7,              // call *%rdi
    0xc9,                    // leave
    0xc3,                    // ret
};
#elif defined(__aarch64__)
static const unsigned int kCode[] = {
    0xa9bf7bfd,  // stp  x29, x30, [sp, #-16]!
    0x910003fd,  // mov  x29, sp
    0xf1000421,  // subs x1, x1, #1
    0x54ffffe1,  // b.ne back to subs
    0xd63f0000,  // blr  x0
    0xa8c17bfd,  // ldp  x29, x30, [sp], #16
    0xd65f03c0,  // ret
};
#endif

typedef void (*Jitted)(void (*)(void), unsigned long);

NOINLINE void call_jitted(Jitted jitted) {
  jitted(called_back, 2000000);
  KEEP_FRAME();
}

static void write_map(const void* code) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%lx %zx jitted_function\n", (unsigned long)code, sizeof kCode);
  fclose(file);
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  void* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code, kCode, sizeof kCode);
  __builtin___clear_cache((char*)code, (char*)code + sizeof kCode);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) return 1;
  if (strcmp(argument(argc, argv, 2, ""), "map") == 0) write_map(code);
  Jitted jitted;
  memcpy(&jitted, &code, sizeof jitted);
  while (thread_cpu_ns() < total) call_jitted(jitted);
  return 0;
}
