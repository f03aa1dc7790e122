// large_frames SECONDS: frames of 100 KiB, which is more than the kernel copies of a stack: at the leaf, and
// in the middle of a stack. They come and go within milliseconds, called from several places and between
// calls of small functions, so that what lies outward of them is not the same for long.

#include <string.h>

#include "burn.h"

enum { kFrameBytes = 100 * 1024 };

#define USE(bytes) __asm__ volatile("" : : "r"(bytes) : "memory")

// A loop that calls nothing.
ALWAYS_INLINE void spin(int times) {
  for (int i = 0; i < times; ++i) spin_briefly();
}

NOINLINE void burn_in_small_frame(void) {
  spin(10);
  KEEP_FRAME();
}

NOINLINE void burn_in_other_small_frame(void) {
  spin(10);
  KEEP_FRAME_APART(1);
}

NOINLINE void burn_in_large_frame(int value) {
  char bytes[kFrameBytes];
  memset(bytes, value, sizeof bytes);
  USE(bytes);
  spin(300);
  USE(bytes);
}

NOINLINE void call_from_large_frame(int value) {
  char bytes[kFrameBytes];
  memset(bytes, value, sizeof bytes);
  USE(bytes);
  for (int i = 0; i < 16; ++i) {
    burn_in_small_frame();
    burn_in_other_small_frame();
  }
  USE(bytes);
}

NOINLINE void first_caller(int value) {
  burn_in_large_frame(value);
  burn_in_small_frame();
  call_from_large_frame(value);
  KEEP_FRAME();
}

NOINLINE void second_caller(int value) {
  call_from_large_frame(value);
  burn_in_other_small_frame();
  burn_in_large_frame(value);
  KEEP_FRAME_APART(2);
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  for (int i = 0; thread_cpu_ns() < total; ++i) {
    if (i % 2 == 0)
      first_caller(i);
    else
      second_caller(i);
  }
  return 0;
}
