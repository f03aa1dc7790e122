// i386 SECONDS: 70, 20 and 10 % of SECONDS (a whole number) of CPU time in three functions, in 32-bit code.
// Without any library, so that any compiler of x86-64 builds it.

#include <stdint.h>

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME_APART(number) __asm__ volatile("" ::"i"(number) : "memory")

// Where the kernel wants to be entered: code of the vdso.
static uint32_t kernel_entry;

static inline int32_t system_call(uint32_t number, uint32_t first, uint32_t second) {
  int32_t result;
  if (kernel_entry != 0)
    __asm__ volatile("call *%1"
                     : "=a"(result)
                     : "m"(kernel_entry), "a"(number), "b"(first), "c"(second)
                     : "memory");
  else
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second) : "memory");
  return result;
}

static inline uint64_t thread_cpu_ns(void) {
  struct {
    uint32_t seconds, nanoseconds;
  } now;
  const uint32_t clock_gettime = 265, thread_clock = 3;
  system_call(clock_gettime, thread_clock, (uint32_t)(uintptr_t)&now);
  return (uint64_t)now.seconds * 1000000000u + now.nanoseconds;
}

__attribute__((always_inline)) static inline void burn_until(uint64_t deadline) {
  do {
    uint32_t state = 1;
    for (int i = 0; i < 8000; ++i) {
      state = state * 1664525u + 1013904223u;
      __asm__ volatile("" : "+r"(state));
    }
  } while (thread_cpu_ns() < deadline);
}

NOINLINE void spend_70(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME_APART(70);
}

NOINLINE void spend_20(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME_APART(20);
}

NOINLINE void spend_10(uint64_t deadline) {
  burn_until(deadline);
  KEEP_FRAME_APART(10);
}

NOINLINE void spend(uint64_t total) {
  const uint64_t start = thread_cpu_ns();
  uint32_t state = 2654435761u;
  for (uint64_t done = 0; done < total;) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    const uint64_t tenth = 4000000 + (state & 0x3fffff);
    spend_70(start + done + 7 * tenth);
    spend_20(start + done + 9 * tenth);
    done += 10 * tenth;
    spend_10(start + done);
  }
}

// From the words that the kernel puts on a new stack: arguments, environment, auxiliary vector.
__attribute__((used, noreturn)) void start(const uint32_t* words) {
  const uint32_t arguments = words[0];
  uint32_t seconds = 0;
  for (const char* text = arguments > 1 ? (const char*)(uintptr_t)words[2] : "1"; *text != 0; ++text)
    seconds = 10 * seconds + (uint32_t)(*text - '0');
  const uint32_t* auxiliary = words + arguments + 2;
  while (*auxiliary++ != 0) continue;
  for (; auxiliary[0] != 0; auxiliary += 2) {
    const uint32_t sysinfo = 32;
    if (auxiliary[0] == sysinfo) kernel_entry = auxiliary[1];
  }
  spend((uint64_t)seconds * 1000000000u);
  const uint32_t exit_group = 252;
  system_call(exit_group, 0, 0);
  __builtin_unreachable();
}

__asm__(
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  .cfi_startproc\n"
    "  .cfi_undefined eip\n"
    "  xor %ebp, %ebp\n"
    "  mov %esp, %eax\n"
    "  and $-16, %esp\n"
    "  sub $12, %esp\n"
    "  push %eax\n"
    "  call start\n"
    "  hlt\n"
    "  .cfi_endproc\n"
    ".size _start, . - _start\n");
