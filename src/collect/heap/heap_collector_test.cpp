#include "collect/heap/heap_collector.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kAddress = 0x1000;

// Processes of the target, as their libraries write into the arena.
class HeapCollectorTest : public testing::Test {
 protected:
  HeapCollectorTest() : collector_(open()), arena_(open_arena()), header_(map<ddprof_heap_header>(0)) {}

  static std::unique_ptr<HeapCollector> open() {
    EngineOptions options;
    EventSpec event;
    event.kind = EventSpec::Kind::allocation;
    event.period = 1000;
    event.is_live = true;
    options.events = {event};
    return HeapCollector::open(Target::command(Pid{::getpid()}), options).value();
  }
  UniqueFd open_arena() {
    const std::string location = collector_->target_environment().back();
    const std::size_t path = location.find('/');
    return UniqueFd(::open(location.substr(path, location.find(':') - path).c_str(), O_RDWR | O_CLOEXEC));
  }
  template <typename Part>
  MappedRegion map(off_t offset) {
    return MappedRegion::map_shared(arena_.get(), (sizeof(Part) + 4095) / 4096 * 4096, offset).value();
  }
  ddprof_heap_header& header() { return *reinterpret_cast<ddprof_heap_header*>(header_.data()); }

  // A process that attaches, with one block that is alive.
  void attach(std::uint32_t number, pid_t pid, std::uint64_t time, std::uint64_t size) {
    const MappedRegion memory =
        map<ddprof_heap_slot>(static_cast<off_t>(header().header_bytes + number * header().slot_bytes));
    auto& slot = *reinterpret_cast<ddprof_heap_slot*>(memory.data());
    slot.keys[3] = kAddress;
    slot.blocks[3] = {.size = size, .interval = 1, .stack = 7, .time = time};
    header().claims[number].pid = static_cast<std::uint32_t>(pid);
    header().claims[number].time = time;
  }
  static pid_t ended_process() {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(0);
    ::waitpid(pid, nullptr, 0);
    return pid;
  }
  std::vector<std::int64_t> live() {
    std::vector<std::int64_t> sizes;
    collector_->for_each_block([&](const LiveHeap::Block& block) { sizes.push_back(block.bytes); });
    return sizes;
  }
  void collect() {
    ASSERT_TRUE(collector_->collect(0ms, [](const CollectorEvent&) {}).ok());
  }

  std::unique_ptr<HeapCollector> collector_;
  UniqueFd arena_;
  MappedRegion header_;
};

TEST_F(HeapCollectorTest, AProgramThatHasTheLibraryIsToldOfTheArenaAlone) {
  EXPECT_EQ(collector_->target_environment().size(), 1U);
  EngineOptions options;
  options.events.emplace_back().kind = EventSpec::Kind::allocation;
  options.events[0].period = 1000;
  options.library = "/lib/libddprof.so";
  const auto preloading = HeapCollector::open(Target::command(Pid{::getpid()}), options).value();
  EXPECT_EQ(preloading->target_environment().front(), "LD_PRELOAD=/lib/libddprof.so");
}

TEST_F(HeapCollectorTest, ASlotIsFreeAsSoonAsItsProcessHasEndedAndItsBlocksAreToldOnce) {
  attach(0, ended_process(), 100, 5000);
  collect();
  EXPECT_EQ(header().claims[0].pid, 0U);
  EXPECT_EQ(live(), std::vector<std::int64_t>{5000});
  collector_->forget_ended(Pid{});
  EXPECT_TRUE(live().empty());
  attach(0, ::getpid(), 200, 6000);
  collect();
  EXPECT_EQ(live(), std::vector<std::int64_t>{6000}) << "nothing of the one before";
  EXPECT_EQ(collector_->counters().heap.attached, 2U);
}

TEST_F(HeapCollectorTest, AProcessThatEndsWhileItAttachesKeepsNoSlot) {
  header().claims[0].pid = static_cast<std::uint32_t>(ended_process());
  collect();
  EXPECT_EQ(header().claims[0].pid, 0U);
}

TEST_F(HeapCollectorTest, BlocksOfAProgramThatBecameAnotherAreGone) {
  attach(0, ::getpid(), 100, 5000);
  collect();
  attach(1, ::getpid(), 200, 6000);
  collect();
  EXPECT_EQ(live(), std::vector<std::int64_t>{6000});
  EXPECT_EQ(header().claims[0].pid, 0U);
}

// It may be one that has no library.
TEST_F(HeapCollectorTest, AnExecEndsWhatWasBeforeIt) {
  attach(0, ::getpid(), 100, 5000);
  collect();
  collector_->forget_blocks(Pid{::getpid()}, 50ns);
  EXPECT_EQ(live().size(), 1U) << "attached since";
  collector_->forget_blocks(Pid{::getpid()}, 150ns);
  EXPECT_TRUE(live().empty());
}

TEST_F(HeapCollectorTest, ProcessesThatWereLeftAloneAreCountedOnce) {
  header().refused = 2;
  header().limited = 3;
  collect();
  collect();
  EXPECT_EQ(collector_->counters().heap.refused, 2U);
  EXPECT_EQ(collector_->counters().heap.limited, 3U);
  header().limited = 4;
  collect();
  EXPECT_EQ(collector_->counters().heap.limited, 4U);
}

}  // namespace
}  // namespace ddprof
