// jemalloc's own functions, for programs that call it by name. A program that finds ours where there is no
// jemalloc (it asked with weak references) gets what malloc has. xallocx() is left alone: a block that grows
// where it is stays the block that was sampled.

#include "inject/hooks.hpp"

namespace inject {

namespace {

struct JemallocFunctions {
  void* (*mallocx)(size_t, int);
  void* (*rallocx)(void*, size_t, int);
  void (*dallocx)(void*, int);
  void (*sdallocx)(void*, size_t, int);
};

constexpr int kAlignmentBits = 63;  // MALLOCX_LG_ALIGN()
constexpr int kZeroed = 0x40;       // MALLOCX_ZERO

void* plain_mallocx(size_t size, int flags) {
  const size_t alignment = size_t{1} << (flags & kAlignmentBits);
  if ((flags & kZeroed) == 0) return real.memalign(alignment, size);
  void* block = alignment <= 16 ? real.calloc(1, size) : real.memalign(alignment, size);
  if (block != nullptr && alignment > 16) __builtin_memset(block, 0, size);
  return block;
}
void* plain_rallocx(void* block, size_t size, int) { return real.realloc(block, size); }
void plain_dallocx(void* block, int) { real.free(block); }
void plain_sdallocx(void* block, size_t, int) { real.free(block); }

template <typename Function>
void set(Function& function, const char* name, Function plain) {
  auto* found = reinterpret_cast<Function>(find_real(name));
  __atomic_store_n(&function, found != nullptr ? found : plain, __ATOMIC_RELEASE);
}

JemallocFunctions found;

// When one of them is called: few programs do.
const JemallocFunctions& jemalloc() {
  if (__builtin_expect(__atomic_load_n(&found.mallocx, __ATOMIC_ACQUIRE) == nullptr, 0)) {
    set(found.sdallocx, "sdallocx", plain_sdallocx);
    set(found.dallocx, "dallocx", plain_dallocx);
    set(found.rallocx, "rallocx", plain_rallocx);
    set(found.mallocx, "mallocx", plain_mallocx);
  }
  return found;
}

DDPROF_SLOW void* mallocx_slowly(size_t size, int flags) {
  SlowPath slow(size);
  void* block = jemalloc().mallocx(size, flags);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

DDPROF_SLOW void* rallocx_slowly(void* block, size_t size, int flags) {
  SlowPath slow(size);
  ddprof_heap_block known{};
  const bool was_known = may_be_sampled(block) && forget_block(block, &known);
  void* moved = jemalloc().rallocx(block, size, flags);
  if (moved == nullptr && was_known) remember_block(block, known);
  slow.take(moved, __builtin_frame_address(0));
  return moved;
}

}  // namespace
}  // namespace inject

using namespace inject;  // NOLINT: only what the program sees is below

DDPROF_EXPORT void* mallocx(size_t size, int flags) {
  return count_down(size) ? mallocx_slowly(size, flags) : jemalloc().mallocx(size, flags);
}

DDPROF_EXPORT void* rallocx(void* block, size_t size, int flags) {
  return count_down(size) || may_be_sampled(block) ? rallocx_slowly(block, size, flags)
                                                   : jemalloc().rallocx(block, size, flags);
}

DDPROF_EXPORT void dallocx(void* block, int flags) {
  if (may_be_sampled(block)) forget_block(block);
  jemalloc().dallocx(block, flags);
}

DDPROF_EXPORT void sdallocx(void* block, size_t size, int flags) {
  if (may_be_sampled(block)) forget_block(block);
  jemalloc().sdallocx(block, size, flags);
}
