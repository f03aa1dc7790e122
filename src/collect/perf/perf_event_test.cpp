#include "collect/perf/perf_event.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <fstream>

namespace ddprof {
namespace {

using ::testing::HasSubstr;

EventSpec clock_event() {
  EventSpec spec;
  spec.name = "sCPU";
  spec.config = PERF_COUNT_SW_TASK_CLOCK;
  spec.is_clock = true;
  spec.frequency = 99;
  return spec;
}

TEST(PerfEventAttr, GivesAClockAFixedPeriod) {
  perf_event_attr attr = task_sampling_attr(clock_event(), {.config = PERF_COUNT_SW_TASK_CLOCK});
  EXPECT_EQ(attr.freq, 0U);
  EXPECT_EQ(attr.sample_period, 1'000'000'000U / 99);
}

TEST(PerfEventAttr, LetsTheKernelFindThePeriodOfACounter) {
  EventSpec spec;
  spec.kind = EventSpec::Kind::hardware;
  spec.frequency = 99;
  perf_event_attr attr = task_sampling_attr(spec, {});
  EXPECT_EQ(attr.freq, 1U);
  EXPECT_EQ(attr.sample_freq, 99U);
  EXPECT_NE(attr.read_format & PERF_FORMAT_TOTAL_TIME_RUNNING, 0U);
}

TEST(PerfEventAttr, RoundsTheStackToWhatTheKernelTakes) {
  EXPECT_EQ(task_sampling_attr(clock_event(), {.stack_bytes = 1001}).sample_stack_user, 1000U);
  EXPECT_EQ(task_sampling_attr(clock_event(), {.stack_bytes = 1 << 20}).sample_stack_user, 65528U);
  EXPECT_EQ(task_sampling_attr(clock_event(), {.stack_bytes = 0}).sample_type & PERF_SAMPLE_STACK_USER, 0U);
}

TEST(PerfEventAttr, CarriesTheSideBandOnlyWhenAsked) {
  EXPECT_EQ(task_sampling_attr(clock_event(), {}).mmap2, 0U);
  perf_event_attr attr = task_sampling_attr(clock_event(), {.side_band = true});
  EXPECT_EQ(attr.mmap2 & attr.comm & attr.task & attr.comm_exec & attr.build_id, 1U);
  EXPECT_EQ(attr.mmap_data, 0U);
}

TEST(PerfEventAttr, CarriesRawDataOnlyWhenItsValueIsThere) {
  EventSpec spec = clock_event();
  EXPECT_EQ(task_sampling_attr(spec, {}).sample_type & PERF_SAMPLE_RAW, 0U);
  spec.value_source = EventSpec::ValueSource::raw_field;
  EXPECT_NE(task_sampling_attr(spec, {}).sample_type & PERF_SAMPLE_RAW, 0U);
}

TEST(PerfEventAttr, LeavesOutTheKernelUnlessPermitted) {
  perf_event_attr user = task_sampling_attr(clock_event(), {});
  EXPECT_EQ(user.exclude_kernel, 1U);
  EXPECT_EQ(user.sample_type & PERF_SAMPLE_CALLCHAIN, 0U);
  perf_event_attr kernel = task_sampling_attr(clock_event(), {.kernel = true});
  EXPECT_EQ(kernel.exclude_kernel, 0U);
  EXPECT_NE(kernel.sample_type & PERF_SAMPLE_CALLCHAIN, 0U);
  EXPECT_EQ(kernel.exclude_callchain_user, 1U);
}

TEST(PerfEventAttr, SharesOnlyTaskEventsWithChildren) {
  EXPECT_EQ(task_sampling_attr(clock_event(), {}).inherit, 1U);
  EXPECT_EQ(task_sampling_attr(clock_event(), {}).inherit_stat, 0U)
      << "READ records would share the ring of the samples";
  perf_event_attr cpu = cpu_sampling_attr(clock_event(), {.config = PERF_COUNT_SW_TASK_CLOCK});
  EXPECT_EQ(cpu.inherit, 0U);
  EXPECT_EQ(cpu.exclude_idle, 1U);
  EXPECT_EQ(cpu.config, std::uint64_t{PERF_COUNT_SW_CPU_CLOCK});
  EXPECT_EQ(counting_attr(clock_event(), {}).inherit, 1U);
}

TEST(PerfEventAttr, TotalsTellTheEndOfTasksAndNothingElse) {
  perf_event_attr totals = task_totals_attr(clock_event(), {.side_band = true});
  EXPECT_EQ(totals.inherit, 1U);
  EXPECT_EQ(totals.inherit_stat, 1U);
  EXPECT_EQ(totals.sample_period, 0U);
  EXPECT_EQ(totals.freq, 0U);
  EXPECT_EQ(totals.mmap | totals.mmap2 | totals.comm | totals.task, 0U);
  EXPECT_EQ(totals.sample_type, task_sampling_attr(clock_event(), {.side_band = true}).sample_type);
}

TEST(PerfEventFeatures, AreGivenUpNewestFirst) {
  auto without_build_id = without_newest({});
  ASSERT_TRUE(without_build_id);
  EXPECT_EQ(*without_build_id, (AttrFeatures{.build_id = false}));
  auto without_clock = without_newest(*without_build_id);
  ASSERT_TRUE(without_clock);
  EXPECT_FALSE(without_clock->clockid);
  auto without_any = without_newest(*without_clock);
  ASSERT_TRUE(without_any);
  EXPECT_FALSE(without_newest(*without_any));
}

class Tracepoints : public ::testing::Test {
 protected:
  Tracepoints() : root_(std::filesystem::path(::testing::TempDir()) / fmt::format("tracefs_{}", ::getpid())) {
    std::filesystem::create_directories(root_ / "events/sched/sched_switch");
    std::ofstream(root_ / "events/sched/sched_switch/id") << "316\n";
  }
  ~Tracepoints() override { std::filesystem::remove_all(root_); }

  std::filesystem::path root_;
};

TEST_F(Tracepoints, AreFoundInTheFirstRootThatHasThem) {
  std::array<std::filesystem::path, 2> roots = {root_ / "absent", root_};
  auto id = find_tracepoint_id("sched", "sched_switch", roots);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*id, 316U);
}

TEST_F(Tracepoints, ThatDoNotExistAreNamed) {
  std::array<std::filesystem::path, 1> roots = {root_};
  auto id = find_tracepoint_id("sched", "nothing", roots);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, ErrorCode::not_found);
  EXPECT_THAT(id.error().message, HasSubstr("sched:nothing"));
}

TEST_F(Tracepoints, CannotLeadOutOfTheTree) {
  std::array<std::filesystem::path, 1> roots = {root_};
  EXPECT_FALSE(find_tracepoint_id("..", "sched_switch", roots).ok());
  EXPECT_FALSE(find_tracepoint_id("sched/../sched", "sched_switch", roots).ok());
  EXPECT_FALSE(find_tracepoint_id("", "x", roots).ok());
}

TEST_F(Tracepoints, AskForTracefsToBeMounted) {
  std::array<std::filesystem::path, 1> roots = {root_ / "absent"};
  auto id = find_tracepoint_id("sched", "sched_switch", roots);
  ASSERT_FALSE(id.ok());
  EXPECT_THAT(id.error().hint, HasSubstr("mount"));
}

}  // namespace
}  // namespace ddprof
