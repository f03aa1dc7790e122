// heap MODE COUNT SIZE [THREADS]: allocates in ways whose truth is known.
//   leak    COUNT blocks of SIZE bytes that stay, and ten times as many that do not
//   paced   the same, a little at a time, as programs do
//   chain   COUNT blocks that grow and shrink by realloc() between 8 and SIZE bytes, and end
//   grow    a block that is moved by realloc() until it has COUNT * SIZE bytes, and stays
//   forms   COUNT blocks of SIZE bytes by each way to allocate, in a function of its own, half of them freed
//   idle    COUNT threads that allocate SIZE bytes each, one after the other
//   crash   like leak, then SIGSEGV
//   fill    COUNT blocks of SIZE bytes that stay, and are written to
//   server  holds COUNT blocks of SIZE bytes from the beginning, and for five seconds as many more, bit by
//   bit

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "burn.h"

namespace {

long count_of_blocks;
size_t size_of_block;

struct alignas(64) Line {
  char bytes[64];
};

void use(void* block) { __asm__ volatile("" ::"r"(block) : "memory"); }

NOINLINE void* leak_here(size_t size) {
  void* block = malloc(size);
  use(block);
  return block;
}

NOINLINE void churn_here(size_t size) {
  void* block = malloc(size);
  use(block);
  free(block);
}

// By each way, with a frame of its own.
NOINLINE void* by_calloc(size_t size) {
  void* block = calloc(size / 8, 8);
  use(block);
  return block;
}
NOINLINE void* by_realloc(size_t size) {
  void* block = realloc(malloc(16), size);
  use(block);
  return block;
}
NOINLINE void* by_memalign(size_t size) {
  void* block = nullptr;
  if (posix_memalign(&block, 256, size) != 0) return nullptr;
  use(block);
  return block;
}
NOINLINE void* by_aligned_alloc(size_t size) {
  void* block = aligned_alloc(64, (size + 63) / 64 * 64);
  use(block);
  return block;
}
NOINLINE void* by_new(size_t size) {
  void* block = ::operator new(size);
  use(block);
  return block;
}
NOINLINE void* by_new_array(size_t size) {
  void* block = new char[size];
  use(block);
  return block;
}
NOINLINE void* by_aligned_new(size_t size) {
  void* block = new Line[size / sizeof(Line)];
  use(block);
  return block;
}
NOINLINE void* by_nothrow_new(size_t size) {
  void* block = ::operator new(size, std::nothrow);
  use(block);
  return block;
}

bool is_paced;

// jemalloc's, if it is there.
extern "C" __attribute__((weak)) void* mallocx(size_t, int);
extern "C" __attribute__((weak)) void* rallocx(void*, size_t, int);
extern "C" __attribute__((weak)) void sdallocx(void*, size_t, int);
NOINLINE void* by_mallocx(size_t size) {
  void* block = mallocx(size, 0);
  use(block);
  return block;
}

void* leak_and_churn(void*) {
  for (long i = 0; i < count_of_blocks; ++i) {
    if (is_paced) usleep(100);
    leak_here(size_of_block);
    for (int other = 0; other < 10; ++other) churn_here(size_of_block);
  }
  return nullptr;
}

template <typename Allocate, typename Free>
void half(Allocate allocate, Free release) {
  for (long i = 0; i < count_of_blocks; ++i) {
    void* kept = allocate(size_of_block);
    void* gone = allocate(size_of_block);
    use(kept);
    use(gone);
    release(gone);
  }
}

void all_forms() {
  half(by_calloc, free);
  half(by_realloc, free);
  half(by_memalign, free);
  half(by_aligned_alloc, free);
  half(by_new, [](void* block) { ::operator delete(block); });
  half(by_new_array, [](void* block) { delete[] static_cast<char*>(block); });
  half(by_aligned_new, [](void* block) { delete[] static_cast<Line*>(block); });
  half(by_nothrow_new, [](void* block) { ::operator delete(block, std::nothrow); });
  if (mallocx != nullptr) {
    half(by_mallocx, [](void* block) { sdallocx(block, size_of_block, 0); });
    void* block = mallocx(100, 0);
    for (size_t size = 100; size < 10000; size += 100) block = rallocx(block, size, 6);
    sdallocx(block, 9900, 6);
  }
}

NOINLINE void* grow_here(void* block, size_t size) {
  void* moved = realloc(block, size);
  use(moved);
  return moved;
}

void chain() {
  for (long i = 0; i < count_of_blocks; ++i) {
    void* block = nullptr;
    for (size_t size = 8; size <= size_of_block; size *= 2) block = grow_here(block, size);
    for (size_t size = size_of_block / 2; size >= 8; size /= 2) block = grow_here(block, size);
    free(block);
  }
}

void* idle(void*) {
  free(leak_here(size_of_block));
  return nullptr;
}

NOINLINE void* hold_here(size_t size) {
  __asm__ volatile("nop");  // or the compiler makes one function of two
  void* block = malloc(size);
  use(block);
  return block;
}

void serve() {
  constexpr unsigned kMicroseconds = 5'000'000;
  for (long i = 0; i < count_of_blocks; ++i) use(hold_here(size_of_block));
  for (long i = 0; i < count_of_blocks; ++i) {
    use(leak_here(size_of_block));
    churn_here(size_of_block);
    usleep(kMicroseconds / static_cast<unsigned>(count_of_blocks));
  }
}

void run_threads(void* (*work)(void*), long threads) {
  std::vector<pthread_t> all(static_cast<size_t>(threads));
  for (pthread_t& thread : all)
    if (pthread_create(&thread, nullptr, work, nullptr) != 0) exit(1);
  for (pthread_t& thread : all) pthread_join(thread, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argument(argc, argv, 1, "leak");
  count_of_blocks = atol(argument(argc, argv, 2, "1000"));
  size_of_block = static_cast<size_t>(atol(argument(argc, argv, 3, "1000")));
  const long threads = atol(argument(argc, argv, 4, "1"));
  is_paced = mode == "paced";
  if (mode == "leak" || mode == "paced" || mode == "crash") run_threads(leak_and_churn, threads);
  if (mode == "chain") chain();
  if (mode == "server") serve();
  if (mode == "fill") {
    for (long i = 0; i < count_of_blocks; ++i) memset(leak_here(size_of_block), 1, size_of_block);
  }
  if (mode == "forms") all_forms();
  if (mode == "grow") {
    void* block = nullptr;
    for (long i = 1; i <= count_of_blocks; ++i)
      block = grow_here(block, static_cast<size_t>(i) * size_of_block);
  }
  if (mode == "idle")
    for (long i = 0; i < count_of_blocks; ++i) run_threads(idle, 1);
  puts("done");
  fflush(stdout);
  if (mode == "crash") raise(SIGSEGV);
  return 0;
}
