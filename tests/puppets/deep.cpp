// deep FRAMES FRAME_BYTES SECONDS [steady|varying]: burns at the end of a recursion of FRAMES frames.
//
// steady: one descent, all the time is spent at its end. varying: a new descent to a random depth between
// half and all of FRAMES for each millisecond, so that outer frames that were seen once prove nothing about
// the next sample.

#include <cstddef>
#include <cstring>

#include "burn.h"

namespace {

NOINLINE void bottom(uint64_t nanoseconds) {
  burn_ns(nanoseconds);
  KEEP_FRAME();
}

template <std::size_t Bytes>
NOINLINE void descend(unsigned frames, uint64_t nanoseconds) {
  char local[Bytes];
  local[0] = static_cast<char>(frames);
  __asm__ volatile("" : : "r"(local) : "memory");
  if (frames <= 1) {
    bottom(nanoseconds);
  } else {
    descend<Bytes>(frames - 1, nanoseconds);
  }
  KEEP_FRAME();
}

using Descent = void (*)(unsigned, uint64_t);

// Frames of a fixed size need a constant: the size is rounded up to the next that exists.
Descent descent_for(unsigned long bytes) {
  if (bytes <= 16) return descend<16>;
  if (bytes <= 128) return descend<128>;
  if (bytes <= 1024) return descend<1024>;
  return descend<4096>;
}

}  // namespace

int main(int argc, char** argv) {
  const auto frames = static_cast<unsigned>(atoi(argument(argc, argv, 1, "500")));
  const Descent descent = descent_for(strtoul(argument(argc, argv, 2, "16"), nullptr, 10));
  const uint64_t total = seconds_to_ns(argument(argc, argv, 3, "1"));
  if (strcmp(argument(argc, argv, 4, "steady"), "varying") != 0) {
    descent(frames, total);
    return 0;
  }
  uint32_t state = 12345;
  while (thread_cpu_ns() < total) {
    descent(frames / 2 + next_random(&state) % (frames / 2 + 1), 1000000);
  }
  return 0;
}
