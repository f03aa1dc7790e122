#pragma once

// System calls without libc: they leave errno as it is, and nobody interposes them. Failures are negative
// numbers, as the kernel returns them.

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

namespace inject {

inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#if defined(__x86_64__)
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "no system calls for this architecture"
#endif
}

inline long to_argument(const void* pointer) {
  return static_cast<long>(reinterpret_cast<intptr_t>(pointer));
}

inline bool has_failed(long result) { return result < 0 && result > -4096; }

// Null when it failed.
inline void* map_memory(size_t bytes, int protection, int flags, int fd, uint64_t offset) {
  const long result =
      system_call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, static_cast<long>(offset));
  return has_failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

// In the place of what is mapped there, in one step.
inline void* map_memory_over(void* place, size_t bytes, int protection, int flags, int fd, uint64_t offset) {
  constexpr int kFixed = 0x10;  // MAP_FIXED
  const long result = system_call(SYS_mmap, to_argument(place), static_cast<long>(bytes), protection,
                                  flags | kFixed, fd, static_cast<long>(offset));
  return has_failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

inline void unmap_memory(void* memory, size_t bytes) {
  system_call(SYS_munmap, to_argument(memory), static_cast<long>(bytes));
}

// Whether a word there can be read. The kernel reads a signal set before it looks at what to do with it, and
// nothing is asked for that it would do.
inline bool is_readable(uint64_t address) {
  constexpr long kNothingToDo = ~0L;
  constexpr long kFault = -14;           // EFAULT
  constexpr uint64_t kFirstPage = 4096;  // a null pointer is no set
  return address >= kFirstPage && system_call(SYS_rt_sigprocmask, kNothingToDo,
                                              static_cast<long>(address & ~uint64_t{7}), 0, 8) != kFault;
}

inline uint64_t thread_pointer() { return reinterpret_cast<uint64_t>(__builtin_thread_pointer()); }

}  // namespace inject
