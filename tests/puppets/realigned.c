// realigned SECONDS: frames whose stack pointer is realigned to 64 bytes and whose size is known only at run
// time. gcc then reaches the caller through a saved pointer: the CFA is *(rbp - n), an expression in the
// unwind information.

#include <alloca.h>
#include <string.h>

#include "burn.h"

struct Vector {
  _Alignas(64) double lanes[8];
};

NOINLINE void burn_with(struct Vector* vector) {
  burn_ns(500000);
  __asm__ volatile("" : : "r"(vector) : "memory");
}

// More arguments than registers: the caller's frame is needed to reach them, in spite of the realignment.
NOINLINE double realign(int levels, double a, double b, int c, int d, int e, int f, int g, int h, int size) {
  struct Vector vector;
  for (int i = 0; i < 8; ++i) vector.lanes[i] = a * i + b;
  char* bytes = alloca((size_t)size);
  memset(bytes, c + d + e + f + g + h, (size_t)size);
  __asm__ volatile("" : : "r"(bytes), "r"(&vector) : "memory");
  if (levels == 0) {
    burn_with(&vector);
  } else {
    vector.lanes[0] += realign(levels - 1, b, a, d, c, f, e, h, g, size % 900 + 37);
  }
  __asm__ volatile("" : : "r"(bytes), "r"(&vector) : "memory");
  return vector.lanes[0] + g + h + size;
}

int main(int argc, char** argv) {
  const uint64_t total = seconds_to_ns(argument(argc, argv, 1, "1"));
  double sum = 0;
  while (thread_cpu_ns() < total) sum += realign(8, 1.5, 2.5, 1, 2, 3, 4, 5, 6, 100);
  return sum == 0;
}
