#include "collect/bpf/thread_context_reader.hpp"

#include <gmock/gmock.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>
#include <thread>

#include "base/clock.hpp"

namespace ddprof {

namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr InterruptKey kThread{Pid{10}, Tid{11}, 1, 0x400};
constexpr std::array<std::byte, 3> kBytes{};

TEST(PendingContexts, GoToTheSampleOfTheSameInterrupt) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 101us), SizeIs(3));
}

TEST(PendingContexts, GoToOneSampleOnly) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  (void)pending.take(kThread, 101us);
  EXPECT_THAT(pending.take(kThread, 102us), IsEmpty());
}

TEST(PendingContexts, MayBeReadJustAfterTheSampleWasStamped) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 99us), SizeIs(3));
}

TEST(PendingContexts, NeverGoToASampleThatIsAsFarAwayAsAnotherSampleOfTheThreadMayBe) {
  PendingContexts pending(100us);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 126us), IsEmpty());
}

TEST(PendingContexts, NeverGoToTheNextSampleWhenTheirOwnWasLost) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  EXPECT_THAT(pending.take(kThread, 100us + 10ms), IsEmpty());
}

TEST(PendingContexts, NeverGoToAnotherThreadCpuOrInstruction) {
  for (const InterruptKey& other :
       {InterruptKey{Pid{10}, Tid{12}, 1, 0x400}, InterruptKey{Pid{9}, Tid{11}, 1, 0x400},
        InterruptKey{Pid{10}, Tid{11}, 2, 0x400}, InterruptKey{Pid{10}, Tid{11}, 1, 0x404}}) {
    PendingContexts pending(1ms);
    pending.add(kThread, 100us, kBytes);
    EXPECT_THAT(pending.take(other, 101us), IsEmpty());
  }
}

TEST(PendingContexts, TheNearestOfSeveralIsTaken) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, std::span(kBytes).first(1));
  pending.add(kThread, 200us, std::span(kBytes).first(2));
  EXPECT_THAT(pending.take(kThread, 180us), SizeIs(2));
}

TEST(PendingContexts, AreForgottenWhenTheirTimeHasPassed) {
  PendingContexts pending(1ms);
  pending.add(kThread, 100us, kBytes);
  pending.add(kThread, 300us, kBytes);
  pending.forget_before(200us);
  EXPECT_EQ(pending.size(), 1U);
}

using ::testing::Ge;

struct [[gnu::packed]] PublishedRecord {
  std::array<std::uint8_t, 16> trace{};
  std::array<std::uint8_t, 8> span{};
  std::uint8_t valid = 0;
  std::uint8_t flags = 0;
  std::uint16_t attribute_bytes = 0;
  std::array<std::uint8_t, kMaxContextAttributes> attributes{};
};

thread_local PublishedRecord* published = nullptr;

std::int64_t distance_from_thread_pointer() {
  const auto pointer = reinterpret_cast<std::intptr_t>(__builtin_thread_pointer());
  return reinterpret_cast<std::intptr_t>(&published) - pointer;
}

UniqueFd sample_own_thread() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = 1'000'000;
  attr.disabled = 1;
  attr.exclude_kernel = 1;
  return UniqueFd(static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

void burn(Nanoseconds time) {
  const Nanoseconds end = thread_cpu_now() + time;
  while (thread_cpu_now() < end) {
  }
}

// As root or with CAP_BPF and CAP_PERFMON; others have no contexts, which the system tests look at.
class ThreadContextReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = ThreadContextReader::open(2, std::chrono::milliseconds(1));
    if (!opened.ok() && ::geteuid() != 0) GTEST_SKIP() << opened.error().message;
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    reader_.emplace(std::move(opened).value());
    event_ = sample_own_thread();
    ASSERT_TRUE(event_.is_open());
    reader_->attach(event_.get());
  }

  void run_with(PublishedRecord* record) {
    published = record;
    ::ioctl(event_.get(), PERF_EVENT_IOC_ENABLE, 0);
    burn(std::chrono::milliseconds(50));
    ::ioctl(event_.get(), PERF_EVENT_IOC_DISABLE, 0);
    published = nullptr;
    reader_->drain();
  }

  [[nodiscard]] ThreadVariable own_variable() const {
    return {ThreadVariable::Kind::fixed, distance_from_thread_pointer(), 0};
  }

  std::optional<ThreadContextReader> reader_;
  UniqueFd event_;
  PublishedRecord record_{.valid = 1};
};

TEST_F(ThreadContextReaderTest, ReadsWhatTheInterruptedThreadHasPublished) {
  ASSERT_TRUE(reader_->set(Pid{::getpid()}, own_variable()));
  run_with(&record_);
  EXPECT_THAT(reader_->pending(), Ge(1U));
  EXPECT_EQ(reader_->lost(), 0U);
}

TEST_F(ThreadContextReaderTest, ReadsNothingOfAProcessThatIsNotInTheTable) {
  ASSERT_TRUE(reader_->set(Pid{::getppid()}, own_variable()));
  run_with(&record_);
  EXPECT_EQ(reader_->pending(), 0U);
}

TEST_F(ThreadContextReaderTest, ReadsNothingOfAProcessThatWasForgotten) {
  ASSERT_TRUE(reader_->set(Pid{::getpid()}, own_variable()));
  ASSERT_TRUE(reader_->set(Pid{::getpid()}, {}));
  run_with(&record_);
  EXPECT_EQ(reader_->pending(), 0U);
}

TEST_F(ThreadContextReaderTest, PassesOverRecordsThatAreNotValid) {
  ASSERT_TRUE(reader_->set(Pid{::getpid()}, own_variable()));
  record_.valid = 0;
  run_with(&record_);
  EXPECT_EQ(reader_->pending(), 0U);
}

TEST_F(ThreadContextReaderTest, SurvivesPointersToNowhere) {
  ASSERT_TRUE(reader_->set(Pid{::getpid()}, own_variable()));
  run_with(reinterpret_cast<PublishedRecord*>(std::uintptr_t{0x10}));
  run_with(reinterpret_cast<PublishedRecord*>(~std::uintptr_t{0}));
  EXPECT_EQ(reader_->pending(), 0U);
}

TEST_F(ThreadContextReaderTest, CountsContextsThatTheRingHasNoRoomFor) {
  ASSERT_TRUE(reader_->set(Pid{::getpid()}, own_variable()));
  record_.attribute_bytes = kMaxContextAttributes;
  ::ioctl(event_.get(), PERF_EVENT_IOC_PERIOD, std::array<std::uint64_t, 1>{20'000}.data());
  published = &record_;
  ::ioctl(event_.get(), PERF_EVENT_IOC_ENABLE, 0);
  const Nanoseconds end = thread_cpu_now() + std::chrono::seconds(5);
  while (reader_->lost() == 0 && thread_cpu_now() < end) {
  }
  ::ioctl(event_.get(), PERF_EVENT_IOC_DISABLE, 0);
  published = nullptr;
  EXPECT_THAT(reader_->lost(), Ge(1U));
}

}  // namespace

}  // namespace ddprof
