#pragma once

#include <stdint.h>

#include "inject/system_calls.hpp"
#include "inject/thread_state.hpp"

extern "C" __attribute__((weak)) void* __libc_stack_end;  // glibc: the first word of the first thread's stack

namespace inject {

// Reads words of the stack that the calling thread runs on, never where there is no memory.
//
// A thread's own stack stays mapped while it lives: what has been found readable of it is remembered. Other
// stacks (coroutines, signal handlers) come and go; their pages are asked for anew by each walk.
class StackMemory {
 public:
  // `may_ask` false: no system call may be made, in a sandbox.
  StackMemory(ThreadState& state, uint64_t sp, bool may_ask) : state_(state), may_ask_(may_ask) {
    begin_at(sp);
  }

  // Goes on with the stack that a signal handler has interrupted. False: it cannot be read.
  bool move_to(uint64_t sp) {
    const bool is_known = sp >= state_.stack_low && sp < state_.stack_high;
    if (!is_known && (!may_ask_ || !is_readable(sp))) return false;
    begin_at(sp);
    return true;
  }

  bool read(uint64_t address, uint64_t& value) {
    if (address < low_ || (address & 7) != 0 || (address >= high_ && !extend_to(address))) return false;
    value = *reinterpret_cast<const uint64_t*>(address);
    return true;
  }

  // Whether a system call may be made.
  [[nodiscard]] bool may_ask() const { return may_ask_; }
  // How much can be read of the stack that begins at that stack pointer, up to `most`.
  uint64_t readable_bytes(uint64_t sp, uint64_t most) {
    begin_at(sp);
    while (!is_own_ && high_ - low_ < most && extend_to(high_)) {
    }
    return high_ - low_ < most ? high_ - low_ : most;
  }

 private:
  void begin_at(uint64_t sp) {
    low_ = high_ = sp;
    is_own_ = sp >= state_.stack_low && sp < state_.stack_high;
    if (is_own_)
      high_ = state_.stack_high;
    else if (may_ask_)
      learn_own_stack(sp);
  }

  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kMostPages = 64;  // are asked for at once
  static constexpr uint64_t kDeepest = uint64_t{1} << 30U;

  static uint64_t end_of_own_stack(uint64_t sp) {
    if (&__libc_stack_end != nullptr) {
      const auto first = reinterpret_cast<uint64_t>(__libc_stack_end);
      if (sp < first && first - sp < kDeepest) return first;
    }
    return thread_pointer();  // lies above the frames of a thread that libc has started
  }

  // All pages between the stack pointer and the end, or those that are new.
  void learn_own_stack(uint64_t sp) {
    const bool is_deeper = sp < state_.stack_low && state_.stack_low - sp <= kMostPages * kPage;
    const uint64_t end = is_deeper ? state_.stack_low : end_of_own_stack(sp);
    if (end <= sp || end - sp > kMostPages * kPage) return;
    for (uint64_t page = (sp | (kPage - 1)) + 1; page < end; page += kPage)
      if (!is_readable(page)) return;
    // Never a range that is not both: a signal handler may come in between, on a stack of its own.
    const uint64_t high = is_deeper ? state_.stack_high : end & ~uint64_t{7};
    state_.stack_low = ~uint64_t{0};
    asm volatile("" ::: "memory");
    state_.stack_high = high;
    asm volatile("" ::: "memory");
    state_.stack_low = sp & ~(kPage - 1);
    high_ = high;
    is_own_ = true;
  }

  // The page of the stack pointer is there; the others are asked for one by one, without a gap.
  bool extend_to(uint64_t address) {
    if (address - low_ > kDeepest) return false;
    high_ = high_ == low_ ? (low_ | (kPage - 1)) + 1 : (high_ + kPage - 1) & ~(kPage - 1);
    for (uint64_t asked = 0; address >= high_; ++asked, high_ += kPage)
      if (!may_ask_ || asked == kMostPages || !is_readable(high_)) return false;
    return true;
  }

  ThreadState& state_;
  uint64_t low_ = 0, high_ = 0;
  bool is_own_ = false;  // all frames of it lie below `high_`
  bool may_ask_;
};

}  // namespace inject
