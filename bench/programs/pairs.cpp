// pairs MODE COUNT THREADS: COUNT allocations and releases in each thread; prints the nanoseconds of a pair.
// They are done in parts of about a millisecond, of which the tenth part that are fastest count: on a busy
// machine the others were interrupted.
//   hot      64 bytes, freed at once
//   tight    16 to 4,096 bytes, freed at once
//   window   16 to 4,096 bytes, of which 64 are alive
//   new      16 to 4,096 bytes by operator new, of which 64 are alive

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "burn.h"

namespace {

constexpr long kPart = 10'000;
std::string mode;
long count;

double now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct Sizes {
  uint64_t state = 88172645463325252U;
  size_t next() {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    return 16 + state % 4081;
  }
};

void use(void* block) { __asm__ volatile("" ::"r"(block) : "memory"); }

NOINLINE void part(long pairs) {
  Sizes sizes;
  void* window[64] = {};
  for (long i = 0; i < pairs; ++i) {
    void*& place = window[i % 64];
    if (mode[0] == 'h' || mode[0] == 't') {
      void* block = malloc(mode[0] == 'h' ? 64 : sizes.next());
      use(block);
      free(block);
    } else if (mode[0] == 'w') {
      free(place);
      place = malloc(sizes.next());
      use(place);
    } else {
      ::operator delete(place);
      place = ::operator new(sizes.next());
      use(place);
    }
  }
  for (void* block : window) mode[0] == 'n' ? ::operator delete(block) : free(block);
}

void* run(void* result) {
  std::vector<double> times;
  for (long i = 0; i < count / kPart; ++i) {
    const double begin = now_ns();
    part(kPart);
    times.push_back((now_ns() - begin) / static_cast<double>(kPart));
  }
  std::sort(times.begin(), times.end());
  *static_cast<double*>(result) = times[times.size() / 10];
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  mode = argument(argc, argv, 1, "window");
  count = atol(argument(argc, argv, 2, "2000000"));
  std::vector<double> best(static_cast<size_t>(atol(argument(argc, argv, 3, "1"))));
  std::vector<pthread_t> threads(best.size());
  for (size_t i = 0; i < threads.size(); ++i) pthread_create(&threads[i], nullptr, run, &best[i]);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  double sum = 0;
  for (const double one : best) sum += one;
  printf("%.3f\n", sum / static_cast<double>(best.size()));
  return 0;
}
