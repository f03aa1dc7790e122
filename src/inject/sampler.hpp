#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/live_set.hpp"
#include "inject/thread_state.hpp"
#include "wire/heap.h"

namespace inject {

// 1 MiB of zeros, of which few pages are ever touched.
extern PageFilter page_filter;

uint64_t monotonic_ns();
// After a fork: the parent's are not ours.
void forget_live_blocks();

// The slow path of an allocation, from before the real function is called until after it. Everything in it
// may be interrupted by a signal handler that allocates: that one is not sampled, but counted. If that
// handler leaves by longjmp(), the thread samples again after a few.
class SlowPath {
 public:
  // After count_down(size). Nothing is due unless the countdown of the calling thread is.
  explicit SlowPath(size_t size);
  ~SlowPath() { let_go(); }
  SlowPath(const SlowPath&) = delete;
  SlowPath& operator=(const SlowPath&) = delete;

  // Before the real function is called where that may throw: no destructor of ours would run.
  void let_go() {
    if (!is_sampling_) return;
    asm volatile("" ::: "memory");
    thread_state.is_sampling = is_sampling_ = false;
  }
  // The allocation has been made. `frame` is the frame of a function that the program has called directly.
  void take(void* block, void* frame, ddprof_heap_what what = DDPROF_HEAP_ALLOCATION) {
    if (interval_ != 0 && block != nullptr) record(block, static_cast<const uint64_t*>(frame), what);
  }

 private:
  void record(void* block, const uint64_t* frame, ddprof_heap_what what);

  size_t size_;
  uint64_t interval_ = 0;  // of the sample that is due; 0: none
  bool is_sampling_ = false;
};

// A block that may be one of the sampled ones is about to be freed or moved. True: it was, and `block` says
// what was known of it. Bootstrap blocks are not.
bool forget_block(const void* address, ddprof_heap_block* block = nullptr);
// It was not freed after all.
void remember_block(const void* address, const ddprof_heap_block& block);

}  // namespace inject
