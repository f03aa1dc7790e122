// alloca_user SECONDS: a recursion whose frames have sizes known only at run time. Build it with -O2 and
// without frame pointers: the compiler then keeps the frame's start in a register for these functions alone.

#include <alloca.h>
#include <string.h>

#include "burn.h"

NOINLINE void burn_at_the_end(const char* bytes) {
  burn_ns(500000);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

NOINLINE void grow(int levels, uint32_t state) {
  const size_t size = 16 + next_random(&state) % 1500;
  char* bytes = alloca(size);
  memset(bytes, levels, size);
  if (levels == 0) {
    burn_at_the_end(bytes);
  } else {
    grow(levels - 1, state);
  }
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  uint32_t state = 7;
  while (thread_cpu_ns() < total) grow(10, next_random(&state));
  return 0;
}
