#pragma once

#include <stddef.h>
#include <stdint.h>

#include "inject/real_functions.hpp"
#include "inject/sampler.hpp"
#include "inject/thread_state.hpp"

#define DDPROF_EXPORT extern "C" __attribute__((visibility("default")))
// Called from an exported function by a jump, so that the frame above is the program's.
#define DDPROF_SLOW __attribute__((noinline, cold))

namespace inject {

// The fast path of every allocation. True: a sample may be due. Without signs: no allocator can serve half of
// the address space, but programs ask for it, and the countdown must not grow by that.
inline bool count_down(ThreadState& state, uint64_t size) {
  return __builtin_expect(__builtin_sub_overflow(state.countdown, size, &state.countdown), 0);
}
inline bool count_down(size_t size) { return count_down(thread_state, size); }

// The fast path of every release. True: the block may be one of those that are kept track of.
inline bool may_be_sampled(const void* block) {
  return __builtin_expect(page_filter.may_have(reinterpret_cast<uint64_t>(block)), 0);
}

}  // namespace inject
