// malloc and its relatives, in front of those of the program.

#include <errno.h>

#include "inject/hooks.hpp"

namespace inject {

namespace {

DDPROF_SLOW void* malloc_slowly(size_t size) {
  SlowPath slow(size);
  void* block = real.malloc(size);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

DDPROF_SLOW void* calloc_slowly(size_t count, size_t size) {
  SlowPath slow(count * size);
  void* block = real.calloc(count, size);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

// Of a block that the allocator does not know.
void* move_bootstrap_block(const void* block, size_t size) {
  void* moved = real.malloc(size);
  const size_t old_size = bootstrap_block_size(block);
  if (moved != nullptr) __builtin_memcpy(moved, block, old_size < size ? old_size : size);
  return moved;
}

// A block that moves is a free and a new allocation. Between the two another thread may be given its old
// address.
DDPROF_SLOW void* realloc_slowly(void* block, size_t size) {
  if (is_bootstrap_block(block)) return move_bootstrap_block(block, size);
  SlowPath slow(size);
  ddprof_heap_block known{};
  const bool was_known = may_be_sampled(block) && forget_block(block, &known);
  void* moved = real.realloc(block, size);
  if (moved == nullptr && was_known && size != 0) remember_block(block, known);
  slow.take(moved, __builtin_frame_address(0));
  return moved;
}

DDPROF_SLOW int posix_memalign_slowly(void** block, size_t alignment, size_t size) {
  SlowPath slow(size);
  const int error = real.posix_memalign(block, alignment, size);
  if (error == 0) slow.take(*block, __builtin_frame_address(0));
  return error;
}

DDPROF_SLOW void* aligned_alloc_slowly(size_t alignment, size_t size) {
  SlowPath slow(size);
  void* block = real.aligned_alloc(alignment, size);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

DDPROF_SLOW void* memalign_slowly(size_t alignment, size_t size) {
  SlowPath slow(size);
  void* block = real.memalign(alignment, size);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

DDPROF_SLOW void* valloc_slowly(size_t size) {
  SlowPath slow(size);
  void* block = real.valloc(size);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

DDPROF_SLOW void* pvalloc_slowly(size_t size) {
  SlowPath slow(size);
  void* block = real.pvalloc(size);
  slow.take(block, __builtin_frame_address(0));
  return block;
}

DDPROF_SLOW void free_slowly(void* block) {
  forget_block(block);
  if (!is_bootstrap_block(block)) real.free(block);
}

}  // namespace

}  // namespace inject

using namespace inject;  // NOLINT: only what the program sees is below

DDPROF_EXPORT void* malloc(size_t size) { return count_down(size) ? malloc_slowly(size) : real.malloc(size); }

DDPROF_EXPORT void* calloc(size_t count, size_t size) {
  return count_down(count * size) ? calloc_slowly(count, size) : real.calloc(count, size);
}

DDPROF_EXPORT void* realloc(void* block, size_t size) {
  return count_down(size) || may_be_sampled(block) ? realloc_slowly(block, size) : real.realloc(block, size);
}

DDPROF_EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return count_down(bytes) || may_be_sampled(block) ? realloc_slowly(block, bytes)
                                                    : real.realloc(block, bytes);
}

DDPROF_EXPORT void free(void* block) { return may_be_sampled(block) ? free_slowly(block) : real.free(block); }

DDPROF_EXPORT void free_sized(void* block, size_t) {
  return may_be_sampled(block) ? free_slowly(block) : real.free(block);
}

DDPROF_EXPORT void free_aligned_sized(void* block, size_t, size_t) {
  return may_be_sampled(block) ? free_slowly(block) : real.free(block);
}

DDPROF_EXPORT int posix_memalign(void** block, size_t alignment, size_t size) {
  return count_down(size) ? posix_memalign_slowly(block, alignment, size)
                          : real.posix_memalign(block, alignment, size);
}

DDPROF_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return count_down(size) ? aligned_alloc_slowly(alignment, size) : real.aligned_alloc(alignment, size);
}

DDPROF_EXPORT void* memalign(size_t alignment, size_t size) {
  return count_down(size) ? memalign_slowly(alignment, size) : real.memalign(alignment, size);
}

DDPROF_EXPORT void* valloc(size_t size) { return count_down(size) ? valloc_slowly(size) : real.valloc(size); }

DDPROF_EXPORT void* pvalloc(size_t size) {
  return count_down(size) ? pvalloc_slowly(size) : real.pvalloc(size);
}
