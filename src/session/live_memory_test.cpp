#include "session/live_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace ddprof {
namespace {

TEST(LiveMemory, ReadsSoMuchForOneSampleAndThenForTheNext) {
  std::size_t read = 0;
  ForeignMemory memory(ForeignMemory::Limits(), [&](Pid, Address, std::span<std::byte> into) {
    read += into.size();
    return into.size();
  });
  LiveMemory live(memory);
  live.select(Pid{::getpid()}, {});
  std::vector<std::byte> window(16384);
  for (int i = 0; i < 1024; ++i) live.read(Address{}, window);
  EXPECT_EQ(read, LiveMemory::kMostBytes);
  live.select(Pid{::getpid()}, {});
  EXPECT_EQ(live.read(Address{}, window), window.size());
}

}  // namespace
}  // namespace ddprof
