// hollow_frames SECONDS: frames with large buffers of which only the lowest bytes are ever used. The pages
// above were never touched, so the kernel cannot copy them with the stack, and what the frames return to lies
// beyond.

#include "burn.h"

NOINLINE void burn_below(const char* bytes) {
  burn_ns(500000);
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

NOINLINE void read_into_a_large_buffer(int levels) {
  char bytes[24 * 1024];
  bytes[0] = (char)levels;
  __asm__ volatile("" : : "r"(bytes) : "memory");
  if (levels == 0) {
    burn_below(bytes);
  } else {
    read_into_a_large_buffer(levels - 1);
  }
  __asm__ volatile("" : : "r"(bytes) : "memory");
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  while (thread_cpu_ns() < total) read_into_a_large_buffer(3);
  return 0;
}
