#pragma once

#include <stdint.h>

namespace inject {

// What a thread has of us, zero when it begins. In the static TLS block: an access is one instruction, and it
// is there as long as the thread is.
struct ThreadState {
  uint64_t countdown;  // bytes until the next sample; it is due when they do not suffice: see is_due()
  uint64_t interval;   // the mean that the countdown was drawn with; 0: not drawn yet, or not sampling
  uint64_t random;
  uint64_t stack_low, stack_high;  // of its own stack, as far as it is known to be readable
  uint32_t tid;
  bool is_capped;     // the countdown was longer: see Countdown
  bool is_sampling;   // in the slow path: a signal handler may allocate
  bool is_resolving;  // the dynamic loader may allocate too
  uint8_t nested;     // samples that were due since is_sampling was set

  // The countdown has passed 0, and what it has passed it by is what it lacks to 2^64.
  [[nodiscard]] bool is_due() const { return static_cast<int64_t>(countdown) < 0; }
};
static_assert(sizeof(ThreadState) <= 64);

extern __thread ThreadState thread_state __attribute__((tls_model("initial-exec"), aligned(64)));

}  // namespace inject

// The labels of a thread (thread_labels.cpp), found by this name. With that of OpenTelemetry's own variable
// it would come before that of a tracer in the same program.
extern "C"
    __attribute__((visibility("default"), tls_model("initial-exec"))) __thread void* ddprof_thread_ctx_v1;
