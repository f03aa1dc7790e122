// nested48 SECONDS [THREADS]: stacks of 48 frames as real C++ programs have them (at -O2): virtual calls,
// std::function, qsort and ostream of the system's libraries in between, frames with alloca and realigned
// frames. Each thread burns SECONDS of CPU time at the end of ever new descents, half a millisecond each.

#include <alloca.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <ostream>
#include <streambuf>
#include <thread>
#include <vector>

#include "burn.h"

namespace {

class Step;
using Path = std::vector<const Step*>;

void walk(const Path& path, std::size_t position);

class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  virtual void run(const Path& path, std::size_t position) const = 0;
};

class PlainStep : public Step {
 public:
  NOINLINE void run(const Path& path, std::size_t position) const override {
    walk(path, position + 1);
    KEEP_FRAME();
  }
};

class FunctionStep : public Step {
 public:
  NOINLINE void run(const Path& path, std::size_t position) const override {
    const std::function<void()> next = [&path, position] {
      walk(path, position + 1);
      KEEP_FRAME();
    };
    next();
    KEEP_FRAME();
  }
};

struct SortItem {
  const Path* path;
  std::size_t position;
};

NOINLINE int compare_items(const void* left, const void*) {
  const auto* item = static_cast<const SortItem*>(left);
  walk(*item->path, item->position + 1);
  KEEP_FRAME();
  return 0;
}

class SortStep : public Step {
 public:
  NOINLINE void run(const Path& path, std::size_t position) const override {
    SortItem items[2] = {{&path, position}, {&path, position}};
    qsort(items, 2, sizeof items[0], compare_items);
    KEEP_FRAME();
  }
};

class WalkingBuffer : public std::streambuf {
 public:
  WalkingBuffer(const Path& path, std::size_t position) : path_(path), position_(position) {}

 protected:
  NOINLINE std::streamsize xsputn(const char*, std::streamsize count) override {
    walk(path_, position_ + 1);
    KEEP_FRAME();
    return count;
  }

 private:
  const Path& path_;
  std::size_t position_;
};

class StreamStep : public Step {
 public:
  NOINLINE void run(const Path& path, std::size_t position) const override {
    WalkingBuffer buffer(path, position);
    std::ostream stream(&buffer);
    stream << "x";
    KEEP_FRAME();
  }
};

class AllocaStep : public Step {
 public:
  NOINLINE void run(const Path& path, std::size_t position) const override {
    const std::size_t size = 32 + position * 8;
    char* bytes = static_cast<char*>(alloca(size));
    memset(bytes, 1, size);
    __asm__ volatile("" : : "r"(bytes) : "memory");
    walk(path, position + 1);
    __asm__ volatile("" : : "r"(bytes) : "memory");
  }
};

class RealignedStep : public Step {
 public:
  NOINLINE void run(const Path& path, std::size_t position) const override {
    alignas(64) double lanes[8] = {};
    char* bytes = static_cast<char*>(alloca(16 + position));
    __asm__ volatile("" : : "r"(lanes), "r"(bytes) : "memory");
    walk(path, position + 1);
    __asm__ volatile("" : : "r"(lanes), "r"(bytes) : "memory");
  }
};

NOINLINE void burn_at_the_end() {
  burn_ns(500000);
  KEEP_FRAME();
}

NOINLINE void walk(const Path& path, std::size_t position) {
  if (position == path.size()) {
    burn_at_the_end();
  } else {
    path[position]->run(path, position);
  }
  KEEP_FRAME();
}

// Ends when this thread has burnt enough.
NOINLINE void walk_until(uint64_t deadline) {
  const PlainStep plain;
  const FunctionStep function;
  const SortStep sort;
  const StreamStep stream;
  const AllocaStep allocating;
  const RealignedStep realigned;
  const Path path{&plain, &function, &sort,      &stream, &allocating, &realigned, &plain,     &sort,
                  &plain, &stream,   &realigned, &plain,  &function,   &plain,     &allocating};
  while (thread_cpu_ns() < deadline) walk(path, 0);
  KEEP_FRAME();
}

NOINLINE void work(uint64_t deadline) {
  walk_until(deadline);
  KEEP_FRAME();
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t nanoseconds = seconds_to_ns(argument(argc, argv, 1, "1"));
  const int others = atoi(argument(argc, argv, 2, "2")) - 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < others; ++i) threads.emplace_back([nanoseconds] { work(nanoseconds); });
  work(nanoseconds);
  for (std::thread& thread : threads) thread.join();
  return 0;
}
