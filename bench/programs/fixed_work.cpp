// fixed_work DESCENTS [THREADS]: the same amount of work each time, whatever it costs, at the end of stacks
// of 48 frames that are about 8 KB deep. The puppets burn a fixed amount of CPU time instead, so they cannot
// show a slow-down.

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "burn.h"

namespace {

constexpr int kDescending = 41;  // and around them: the work, its caller, and what starts a thread
constexpr std::size_t kFrameBytes = 128;

NOINLINE void work() {
  for (int i = 0; i < 8; ++i) spin_briefly();
  KEEP_FRAME();
}

template <int depth>
NOINLINE void descend() {
  char bytes[kFrameBytes];
  memset(bytes, depth, sizeof bytes);
  __asm__ volatile("" : : "r"(bytes) : "memory");
  if constexpr (depth == 0) {
    work();
  } else {
    descend<depth - 1>();
  }
  __asm__ volatile("" : : "r"(bytes), "i"(depth) : "memory");
}

void work_through(long descents) {
  for (long i = 0; i < descents; ++i) descend<kDescending>();
}

}  // namespace

int main(int argc, char** argv) {
  const long descents = atol(argument(argc, argv, 1, "10000"));
  const int others = atoi(argument(argc, argv, 2, "2")) - 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < others; ++i) threads.emplace_back([descents] { work_through(descents); });
  work_through(descents);
  for (std::thread& thread : threads) thread.join();
  return 0;
}
