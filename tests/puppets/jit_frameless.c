// jit_frameless SECONDS [changing]: code written into executable memory at run time that has neither unwind
// information nor frame pointers, as oneDNN and other makers of kernels write it: one function that spins,
// and one that calls back into the program, with something else in rbp. Half of the time is spent in each.
// changing: several times a second other code, with larger or smaller frames, is written to the same place.

#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "burn.h"

NOINLINE void called_back(void) {
  burn_ns(1000000);
  KEEP_FRAME();
}

enum { kPageBytes = 4096, kCallerOffset = 256 };

typedef void (*Spin)(unsigned long);
typedef void (*Caller)(void (*)(void));

#if defined(__x86_64__)
static void write_code(unsigned char* to, unsigned char frame_bytes) {
  const unsigned char spin[] = {
      0x53,                           // push %rbx
      0x41, 0x54,                     // push %r12
      0x48, 0x83, 0xec, frame_bytes,  // sub  $frame, %rsp
      0x48, 0x89, 0xfb,               // mov  %rdi, %rbx
      0x48, 0xff, 0xcb,               // dec  %rbx
      0x75, 0xfb,                     // jnz  back to dec
      0x48, 0x83, 0xc4, frame_bytes,  // add  $frame, %rsp
      0x41, 0x5c,                     // pop  %r12
      0x5b,                           // pop  %rbx
      0xc3,                           // ret
  };
  const unsigned char caller[] = {
      0x55,                                 // push %rbp
      0x53,                                 // push %rbx
      0x48, 0x83, 0xec, frame_bytes,        // sub  $frame, %rsp
      0x48, 0x89, 0xfb,                     // mov  %rdi, %rbx
      0xbd, 0x39, 0x30, 0x00,        0x00,  // mov  $12345, %ebp
      0xff, 0xd3,                           // call *%rbx
      0x48, 0x83, 0xc4, frame_bytes,        // add  $frame, %rsp
      0x5b,                                 // pop  %rbx
      0x5d,                                 // pop  %rbp
      0xc3,                                 // ret
  };
  memcpy(to, spin, sizeof spin);
  memcpy(to + kCallerOffset, caller, sizeof caller);
}
#else
#error "x86-64 alone"
#endif

NOINLINE void call_generated(unsigned char* code) {
  Spin spin;
  Caller caller;
  unsigned char* second = code + kCallerOffset;
  memcpy(&spin, &code, sizeof spin);
  memcpy(&caller, &second, sizeof caller);
  spin(2000000);
  caller(called_back);
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  const int is_changing = strcmp(argument(argc, argv, 2, ""), "changing") == 0;
  unsigned char* code = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  for (int i = 0; i == 0 || thread_cpu_ns() < total; ++i) {
    if (i == 0 || (is_changing && i % 64 == 0)) {
      if (mprotect(code, kPageBytes, PROT_READ | PROT_WRITE) != 0) return 1;
      write_code(code, (unsigned char)(24 + i / 64 % 4 * 16));
      if (mprotect(code, kPageBytes, PROT_READ | PROT_EXEC) != 0) return 1;
    }
    call_generated(code);
  }
  return 0;
}
