#include "inject/stack_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>

namespace inject {
namespace {

constexpr size_t kPage = 4096;

// Some pages of memory between two that cannot be read.
class Island {
 public:
  explicit Island(size_t pages) : pages_(pages) {
    void* memory = ::mmap(nullptr, (pages + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    begin_ = reinterpret_cast<uint64_t>(memory) + kPage;
    ::mprotect(reinterpret_cast<void*>(begin_), pages * kPage, PROT_READ | PROT_WRITE);
  }
  ~Island() { ::munmap(reinterpret_cast<void*>(begin_ - kPage), (pages_ + 2) * kPage); }
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;

  [[nodiscard]] uint64_t begin() const { return begin_; }
  [[nodiscard]] uint64_t end() const { return begin_ + pages_ * kPage; }

 private:
  size_t pages_;
  uint64_t begin_;
};

TEST(StackMemory, KnowsWhatCanBeRead) {
  const Island island(1);
  EXPECT_TRUE(is_readable(island.begin()));
  EXPECT_TRUE(is_readable(island.end() - 8));
  EXPECT_FALSE(is_readable(island.end()));
  EXPECT_FALSE(is_readable(0));
  EXPECT_FALSE(is_readable(~uint64_t{0}));
}

// As a coroutine has it.
TEST(StackMemory, EndsWhereAStrangeStackEnds) {
  const Island island(3);
  ThreadState state{};
  StackMemory memory(state, island.begin() + 100 * 8, true);
  uint64_t value = 0;
  EXPECT_TRUE(memory.read(island.begin() + 100 * 8, value));
  EXPECT_TRUE(memory.read(island.end() - 8, value));
  EXPECT_FALSE(memory.read(island.end(), value));
  EXPECT_FALSE(memory.read(island.begin() + 99 * 8, value)) << "below the stack pointer";
  EXPECT_FALSE(memory.read(island.begin() + 101 * 8 + 1, value)) << "not aligned";
  EXPECT_EQ(memory.readable_bytes(island.begin() + 100 * 8, 1 << 20), 3 * kPage - 100 * 8);
  EXPECT_EQ(state.stack_high, 0U) << "it may be gone the next time";
}

TEST(StackMemory, InASandboxReadsThePageOfTheStackPointer) {
  const Island island(2);
  ThreadState state{};
  StackMemory memory(state, island.begin() + 8, false);
  uint64_t value = 0;
  EXPECT_TRUE(memory.read(island.begin() + kPage - 8, value));
  EXPECT_FALSE(memory.read(island.begin() + kPage, value));
}

// A handler on a stack of its own has interrupted code on another.
TEST(StackMemory, GoesOnWithAnotherStack) {
  const Island first(1);
  const Island second(1);
  ThreadState state{};
  StackMemory memory(state, first.begin(), true);
  uint64_t value = 0;
  EXPECT_FALSE(memory.read(second.begin() + 8, value));
  EXPECT_TRUE(memory.move_to(second.begin() + 8));
  EXPECT_TRUE(memory.read(second.end() - 8, value));
  EXPECT_FALSE(memory.read(second.end(), value));
  EXPECT_FALSE(memory.move_to(second.end())) << "there is nothing";
  EXPECT_FALSE(StackMemory(state, first.begin(), false).move_to(second.begin()))
      << "who may not ask does not know";
}

void read_own_stack() {
  ThreadState state{};
  uint64_t local = 4711;
  const auto sp = reinterpret_cast<uint64_t>(&local);
  {
    StackMemory memory(state, sp, true);
    uint64_t value = 0;
    EXPECT_TRUE(memory.read(sp, value));
    EXPECT_EQ(value, 4711U);
    EXPECT_NE(state.stack_high, 0U);
    EXPECT_FALSE(memory.read(sp + (uint64_t{1} << 40U), value));
    // To the last byte that there is, whatever lies behind the end of the frames.
    const uint64_t bytes = memory.readable_bytes(sp, 1 << 20);
    for (uint64_t offset = 0; offset < bytes / 8; ++offset) EXPECT_TRUE(memory.read(sp + offset * 8, value));
  }
  StackMemory again(state, sp, false);
  uint64_t value = 0;
  EXPECT_TRUE(again.read(state.stack_high - 8, value)) << "without asking once more";
}

TEST(StackMemory, RemembersTheStackOfTheThreadItself) {
  read_own_stack();
  std::thread(read_own_stack).join();
}

}  // namespace
}  // namespace inject
