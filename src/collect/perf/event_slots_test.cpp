#include "collect/perf/event_slots.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "collect/perf/perf_event.hpp"

namespace ddprof {
namespace {

constexpr Tid kParent{1001};
constexpr Tid kChild{1002};
constexpr Tid kGrandchild{1003};

class EventSlotsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto added = add_slot(kParent); !added.ok()) GTEST_SKIP() << added.error().message;
    ASSERT_TRUE(add_slot(kChild).ok());
  }
  // A silent event of this process stands for one of task `tid`.
  Result<void> add_slot(Tid tid, SlotRole role = SlotRole::task_sampling, std::size_t position = 0) {
    UniqueFd fd = TRY(open_perf_event(ring_attr({}, 1), 0, 0, "silent"));
    std::uint64_t id = 0;
    EXPECT_EQ(::ioctl(fd.get(), PERF_EVENT_IOC_ID, &id), 0);
    ids_[{tid, position}] = id;
    return slots_.add({.fd = std::move(fd), .event = 0, .tid = tid, .position = position, .role = role});
  }
  const EventSlot& slot_of(Tid tid, std::size_t position = 0) {
    return *slots_.find(ids_.at({tid, position}));
  }

  std::map<std::pair<Tid, std::size_t>, std::uint64_t> ids_;
  EventSlots slots_{1, 2};
};

TEST_F(EventSlotsTest, FindsNothingForAForeignId) { EXPECT_EQ(slots_.find(~std::uint64_t{0}), nullptr); }

TEST_F(EventSlotsTest, DropsTheEventOfATaskThatAlsoInheritedOne) {
  slots_.drop_doubles(slot_of(kChild), kChild);
  EXPECT_FALSE(slot_of(kChild).is_dropped);
  slots_.drop_doubles(slot_of(kParent), kChild);
  EXPECT_TRUE(slot_of(kChild).is_dropped);
  EXPECT_FALSE(slot_of(kParent).is_dropped);
  EXPECT_EQ(slots_.open_count(), 1U);
}

// A task that is forked while events are being opened on its parent inherits those of some CPUs.
TEST_F(EventSlotsTest, DropsDoublesOfTheCpuThatShowedThemAlone) {
  ASSERT_TRUE(add_slot(kParent, SlotRole::task_sampling, 1).ok());
  ASSERT_TRUE(add_slot(kChild, SlotRole::task_sampling, 1).ok());
  slots_.drop_doubles(slot_of(kParent, 1), kChild);
  EXPECT_TRUE(slot_of(kChild, 1).is_dropped);
  EXPECT_FALSE(slot_of(kChild).is_dropped);
}

// An idle child may have been attached to twice, and only what it started is ever seen.
TEST_F(EventSlotsTest, DropsDoublesThatOnlyDescendantsShow) {
  ASSERT_TRUE(add_slot(kGrandchild).ok());
  slots_.task_is_below(kChild, kParent);
  slots_.task_is_below(kGrandchild, kChild);
  slots_.drop_doubles(slot_of(kChild), kGrandchild);
  EXPECT_TRUE(slot_of(kGrandchild).is_dropped);
  EXPECT_FALSE(slot_of(kChild).is_dropped);
  slots_.drop_doubles(slot_of(kParent), kGrandchild);
  EXPECT_TRUE(slot_of(kChild).is_dropped);
  EXPECT_EQ(slots_.open_count(), 1U);
}

TEST_F(EventSlotsTest, SurvivesACircleOfNumbers) {
  slots_.task_is_below(kChild, kParent);
  slots_.task_is_below(kParent, kChild);
  ASSERT_TRUE(add_slot(kGrandchild).ok());
  slots_.drop_doubles(slot_of(kGrandchild), kChild);
  EXPECT_EQ(slots_.open_count(), 1U);
}

TEST_F(EventSlotsTest, TellsATaskFromALaterOneWithItsNumber) {
  slots_.task_forked(kChild);
  slots_.task_ended(kChild);  // its total may come now
  slots_.task_forked(kChild);
  slots_.drop_doubles(slot_of(kParent), kChild);
  EXPECT_FALSE(slot_of(kChild).is_dropped);
}

TEST_F(EventSlotsTest, StillKnowsTheRecordsOfRetiredEvents) {
  slots_.retire(SlotRole::task_sampling);
  EXPECT_EQ(slots_.open_count(), 0U);
  EXPECT_FALSE(slot_of(kParent).is_dropped);
  EXPECT_EQ(slots_.find_live_task_fd(), -1);
}

// The CPU time of this thread.
class ClockSlots : public EventSlotsTest {
 protected:
  void SetUp() override {
    EventSlotsTest::SetUp();
    if (IsSkipped()) return;
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.exclude_kernel = 1;
    auto fd = open_perf_event(attr, 0, -1, "task clock");
    ASSERT_TRUE(fd.ok()) << fd.error().message;
    clock_ = fd->get();
    ASSERT_TRUE(
        slots_.add({.fd = std::move(fd).value(), .event = 0, .tid = kParent, .role = SlotRole::counting})
            .ok());
  }
  [[nodiscard]] std::int64_t counted() const { return slots_.total(0, SlotRole::counting); }
  [[nodiscard]] bool is_running() const {
    const std::int64_t before = counted();
    for (int i = 0; i < 1'000'000; ++i) asm volatile("");
    return counted() > before;
  }
  void stop() const { ASSERT_EQ(::ioctl(clock_, PERF_EVENT_IOC_DISABLE, 0), 0); }

  int clock_ = -1;
};

TEST_F(ClockSlots, TotalsHoldWhatRetiredEventsCounted) {
  ASSERT_TRUE(is_running());
  stop();
  const std::int64_t before = counted();
  slots_.retire(SlotRole::counting);
  EXPECT_EQ(counted(), before);
}

TEST_F(ClockSlots, TotalsAreOfOneRoleSinceItCounts) {
  ASSERT_TRUE(is_running());
  EXPECT_EQ(slots_.total(0, SlotRole::task_sampling), 0);
  stop();
  slots_.start_counting();
  EXPECT_EQ(counted(), 0);
  slots_.retire(SlotRole::counting);
  EXPECT_EQ(counted(), 0);
}

TEST_F(ClockSlots, StartsAndStopsOneRole) {
  slots_.disable(SlotRole::task_sampling);
  EXPECT_TRUE(is_running());
  slots_.disable(SlotRole::counting);
  EXPECT_FALSE(is_running());
  ASSERT_TRUE(slots_.enable(SlotRole::task_sampling).ok());
  EXPECT_FALSE(is_running());
  ASSERT_TRUE(slots_.enable(SlotRole::counting).ok());
  EXPECT_TRUE(is_running());
}

TEST_F(ClockSlots, StartsAndStopsAllButOneEvent) {
  constexpr std::uint32_t kOther = 7;
  slots_.disable_all_but(0);
  EXPECT_TRUE(is_running());
  slots_.disable_all_but(kOther);
  EXPECT_FALSE(is_running());
  ASSERT_TRUE(slots_.enable_all_but(0).ok());
  EXPECT_FALSE(is_running());
  ASSERT_TRUE(slots_.enable_all_but(kOther).ok());
  EXPECT_TRUE(is_running());
}

// One that counts is on no CPU of its own, and the kernel would refuse to redirect it.
TEST_F(ClockSlots, RedirectsSamplingEventsAlone) {
  auto rings = RingSet::open({0}, {}, {.wanted_pages = 1, .pages = 1});
  if (!rings.ok()) GTEST_SKIP() << rings.error().message;
  EXPECT_TRUE(slots_.redirect(*rings).ok());
  EXPECT_NE(slots_.find_live_task_fd(), -1) << "this task";
  EXPECT_NE(slots_.find_live_task_fd(), clock_);
  ASSERT_TRUE(add_slot(kChild, SlotRole::task_sampling, 1).ok());
  EXPECT_FALSE(slots_.redirect(*rings).ok()) << "there is no second ring";
}

TEST_F(EventSlotsTest, ForgetsOneRoleOnly) {
  ASSERT_TRUE(add_slot(kParent, SlotRole::cpu_sampling).ok());
  slots_.forget(SlotRole::cpu_sampling);
  EXPECT_EQ(slots_.open_count(), 2U);
}

// What a worker that was taken over may say.
class HostileNotes : public EventSlotsTest {
 protected:
  static UniqueFd perf_event() {
    return std::move(open_perf_event(ring_attr({}, 1), 0, 0, "silent")).value();
  }
  void follow(EventNote note, UniqueFd fd) { slots_.follow(note, std::move(fd)); }
};

TEST_F(HostileNotes, HoldsWhatMakesSense) {
  follow({.step = EventNote::Step::opened, .role = SlotRole::counting}, perf_event());
  EXPECT_EQ(slots_.open_count(), 3U);
}

TEST_F(HostileNotes, HoldsNoEventThatThePlanDoesNotHave) {
  follow({.step = EventNote::Step::opened, .event = 1}, perf_event());
  follow({.step = EventNote::Step::opened, .event = ~0U}, perf_event());
  follow({.step = EventNote::Step::opened, .position = 2}, perf_event());
  follow({.step = EventNote::Step::opened, .position = ~0U}, perf_event());
  follow({.step = EventNote::Step::opened, .role = static_cast<SlotRole>(200)}, perf_event());
  EXPECT_EQ(slots_.open_count(), 2U);
}

TEST_F(HostileNotes, HoldsNothingButPerfEvents) {
  follow({.step = EventNote::Step::opened}, UniqueFd());
  follow({.step = EventNote::Step::opened}, UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)));
  follow({.step = EventNote::Step::opened}, UniqueFd(::eventfd(0, EFD_CLOEXEC)));
  EXPECT_EQ(slots_.open_count(), 2U);
}

TEST_F(HostileNotes, HoldsAnEventOnce) {
  UniqueFd fd = perf_event();
  for (int i = 0; i < 2; ++i)
    follow({.step = EventNote::Step::opened, .role = SlotRole::counting}, UniqueFd(::dup(fd.get())));
  EXPECT_EQ(slots_.open_count(), 3U);
}

TEST_F(HostileNotes, PassesOverStepsAndRolesThatThereAreNot) {
  follow({.step = static_cast<EventNote::Step>(99)}, UniqueFd());
  follow({.step = EventNote::Step::retired, .role = static_cast<SlotRole>(99)}, UniqueFd());
  follow({.step = EventNote::Step::task_dropped, .tid = -1, .position = ~0U}, UniqueFd());
  EXPECT_EQ(slots_.open_count(), 2U);
}

}  // namespace
}  // namespace ddprof
