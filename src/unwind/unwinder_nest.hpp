#pragma once

// For tests and benchmarks: calls of every shape that compilers make, without frame pointers where they allow
// it.

#include <alloca.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O2", "omit-frame-pointer", "no-optimize-sibling-calls", "no-inline")
#endif

namespace ddprof::nest {

using Leaf = std::function<void()>;

// What comes after a call keeps it from becoming a jump.
inline void keep_frame() { asm volatile("" ::: "memory"); }

inline void keep(void* memory) { asm volatile("" ::"r"(memory) : "memory"); }

struct Shape {
  virtual ~Shape() = default;
  virtual void call(const Leaf& leaf) = 0;
};

struct VirtualCall final : Shape {
  __attribute__((noinline)) void call(const Leaf& leaf) override {
    leaf();
    keep_frame();
  }
};

__attribute__((noinline)) inline void through_virtual(Shape& shape, const Leaf& leaf) {
  shape.call(leaf);
  keep_frame();
}

inline const Leaf* qsort_leaf = nullptr;
inline bool qsort_done = false;
__attribute__((noinline)) inline int compare(const void* left, const void* right) {
  if (!std::exchange(qsort_done, true)) (*qsort_leaf)();
  return *static_cast<const int*>(left) - *static_cast<const int*>(right);
}
__attribute__((noinline)) inline void through_qsort(const Leaf& leaf) {
  int values[] = {3, 1, 2};
  qsort_leaf = &leaf;
  qsort_done = false;
  std::qsort(values, 3, sizeof(int), &compare);
  keep_frame();
}

__attribute__((noinline)) inline void through_alloca(std::size_t bytes, const Leaf& leaf) {
  void* buffer = alloca(bytes);
  keep(buffer);
  leaf();
  keep_frame();
}

__attribute__((noinline)) inline void through_realigned(std::size_t bytes, const Leaf& leaf) {
  alignas(64) char local[128];
  void* buffer = alloca(bytes);  // with alloca, gcc keeps an argument pointer (DRAP)
  keep(local);
  keep(buffer);
  leaf();
  keep_frame();
}

__attribute__((noinline, force_align_arg_pointer)) inline void through_forced_alignment(const Leaf& leaf) {
  alignas(32) char local[32];
  keep(local);
  leaf();
  keep_frame();
}

__attribute__((noinline)) inline void through_many_registers(long a, long b, long c, const Leaf& leaf) {
  leaf();
  asm volatile("" ::"r"(a), "r"(b), "r"(c) : "rbx", "rbp", "r12", "r13", "r14", "memory");
}

__attribute__((noinline)) inline void recurse(int depth, const Leaf& leaf) {
  if (depth == 0) {
    leaf();
  } else {
    recurse(depth - 1, leaf);
  }
  keep_frame();
}

// All of them, one inside the other, over `depth` plain recursions.
__attribute__((noinline)) inline void run(int depth, const Leaf& leaf) {
  VirtualCall shape;
  const Leaf innermost = [&] { through_virtual(shape, leaf); };
  const Leaf registers = [&] { through_many_registers(1, 2, 3, innermost); };
  const Leaf sorted = [&] { through_qsort(registers); };
  const Leaf forced = [&] { through_forced_alignment(sorted); };
  const Leaf realigned = [&] { through_realigned(100, forced); };
  const Leaf dynamic = [&] { through_alloca(200, realigned); };
  recurse(depth, dynamic);
  keep_frame();
}

}  // namespace ddprof::nest

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
