#include "collect/perf/record_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "collect/perf/record_builder.hpp"

// Records as the kernel writes them, of tasks that there are not.

namespace ddprof {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kRead = 4'194'001;  // the process that is followed
constexpr std::uint32_t kNeighbour = 4'194'002;

Pid pid_from(std::uint32_t number) { return Pid{static_cast<std::int32_t>(number)}; }
Tid tid_from(std::uint32_t number) { return Tid{static_cast<std::int32_t>(number)}; }

// The kinds of the events that came out, by their place in the variant.
template <typename Event>
std::size_t kind_of() {
  return CollectorEvent(Event{}).index();
}

class RecordReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    PerfOptions options;
    options.events = {default_cpu_event()};
    options.has_pauses = true;
    auto opened = PerfEvents::open(target_, options);
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    events_ = std::move(opened).value();
    mode_.emplace(target_, PerCpuUse::never, *events_);
    reader_.emplace(*events_, *mode_);
    mode_->tasks().add(tid_from(kRead), pid_from(kRead));
    of_task_ = add_slot(SlotRole::task_sampling);
    of_cpu_ = add_slot(SlotRole::cpu_sampling);
    of_totals_ = add_slot(SlotRole::task_totals);
  }

  // A silent event of this process stands for one of the process that is followed.
  std::uint64_t add_slot(SlotRole role) {
    auto fd = open_perf_event(ring_attr({}, 1), 0, 0, "silent");
    EXPECT_TRUE(fd.ok());
    std::uint64_t id = 0;
    EXPECT_EQ(::ioctl(fd->get(), PERF_EVENT_IOC_ID, &id), 0);
    EXPECT_TRUE(events_->slots()
                    .add({.fd = std::move(fd).value(), .event = 1, .tid = tid_from(kRead), .role = role})
                    .ok());
    return id;
  }

  void read(const RecordBuilder& record) {
    const auto words = record.build();
    reader_->read(std::as_bytes(std::span(words)), [this](const CollectorEvent& event) { take(event); });
  }
  void take(const CollectorEvent& event) {
    kinds_.push_back(event.index());
    if (const auto* total = std::get_if<TaskTotalEvent>(&event)) total_ += total->value;
    if (const auto* sample = std::get_if<SampleEvent>(&event)) basis_ = sample->basis;
  }
  // What the records of one test have come to.
  std::vector<std::size_t> taken() { return std::exchange(kinds_, {}); }

  [[nodiscard]] const RecordLayout& layout() const { return events_->plan().events[1].layout; }
  void read_sample(std::uint64_t id, std::uint32_t pid, std::uint64_t time) {
    RecordBuilder record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    record.u64(id).u64(0x401000).u32(pid).u32(pid).u64(time).u32(0).u32(0).u64(1000);
    if ((layout().sample_type & PERF_SAMPLE_CALLCHAIN) != 0) record.u64(0);
    read(record.u64(PERF_SAMPLE_REGS_ABI_NONE).u64(0));
  }
  void read_comm(std::uint64_t id, std::uint32_t pid, bool is_exec, std::uint64_t time = 10) {
    read(RecordBuilder(PERF_RECORD_COMM, is_exec ? PERF_RECORD_MISC_COMM_EXEC : 0)
             .u32(pid)
             .u32(pid)
             .text("name")
             .trailer(pid, pid, time, 0, id));
  }
  void read_map(std::uint64_t id, std::uint32_t pid, std::uint64_t time = 10) {
    read(RecordBuilder(PERF_RECORD_MMAP)
             .u32(pid)
             .u32(pid)
             .u64(0x1000)
             .u64(0x1000)
             .u64(0)
             .text("/file")
             .trailer(pid, pid, time, 0, id));
  }
  void read_task(std::uint32_t type, std::uint64_t id, std::uint32_t pid, std::uint32_t tid,
                 std::uint32_t parent, std::uint64_t time = 10) {
    read(RecordBuilder(type).u32(pid).u32(parent).u32(tid).u32(parent).u64(time).trailer(pid, tid, time, 0,
                                                                                         id));
  }
  void read_total(std::uint64_t id, std::uint64_t value) {
    RecordBuilder record(PERF_RECORD_READ);
    record.u32(kRead).u32(kRead).u64(value);
    const std::uint64_t format = layout().read_format;
    for (const std::uint64_t bit :
         {PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_FORMAT_ID})
      if ((format & bit) != 0) record.u64(1);
    read(record.trailer(kRead, kRead, 10, 0, id));
  }
  void read_lost(std::uint64_t id, std::uint64_t count) {
    read(RecordBuilder(PERF_RECORD_LOST).u64(id).u64(count).trailer(kRead, kRead, 10, 0, id));
  }

  Target target_ = Target::process(Pid{::getpid()});
  std::unique_ptr<PerfEvents> events_;
  std::optional<SamplingMode> mode_;
  std::optional<RecordReader> reader_;
  std::uint64_t of_task_ = 0, of_cpu_ = 0, of_totals_ = 0;
  std::vector<std::size_t> kinds_;
  std::int64_t total_ = 0;
  SampleBasis basis_{};
};

TEST_F(RecordReaderTest, TellsSamplesOfTasksFromThoseOfCpus) {
  read_sample(of_task_, kRead, 10);
  EXPECT_THAT(taken(), ElementsAre(kind_of<SampleEvent>()));
  EXPECT_EQ(basis_, SampleBasis::own_period);
  read_sample(of_cpu_, kRead, 11);
  EXPECT_THAT(taken(), ElementsAre(kind_of<SampleEvent>()));
  EXPECT_EQ(basis_, SampleBasis::cpu_period);
  EXPECT_EQ(reader_->counters().samples, 2U);
  EXPECT_EQ(mode_->tasks().find(tid_from(kRead))->samples, 2U);
}

// Events of CPUs see all processes; those of tasks are inherited, so that they see the target's alone.
TEST_F(RecordReaderTest, LeavesOutWhatBelongsToOtherProcesses) {
  read_sample(of_cpu_, kNeighbour, 10);
  read_map(of_cpu_, kNeighbour);
  read_comm(of_cpu_, kNeighbour, false);
  read_task(PERF_RECORD_FORK, of_cpu_, kNeighbour + 1, kNeighbour + 1, kNeighbour);
  read_task(PERF_RECORD_EXIT, of_cpu_, kNeighbour, kNeighbour, 1);
  EXPECT_THAT(taken(), ElementsAre());
  EXPECT_EQ(reader_->counters().filtered_samples, 1U);
  EXPECT_EQ(reader_->counters().samples, 0U);
  read_map(of_task_, kNeighbour);
  EXPECT_THAT(taken(), ElementsAre(kind_of<MapEvent>()));
}

TEST_F(RecordReaderTest, CountsWhatMakesNoSense) {
  read_sample(~std::uint64_t{0}, kRead, 10);
  read(RecordBuilder(PERF_RECORD_FORK).u64(of_task_));
  EXPECT_EQ(reader_->counters().malformed_records, 2U);
  EXPECT_THAT(taken(), ElementsAre());
}

TEST_F(RecordReaderTest, CountsWhatWasLostButNotEndsOfTasks) {
  read_lost(of_task_, 5);
  read_lost(of_task_, 2);
  EXPECT_THAT(taken(), ElementsAre(kind_of<LostEvent>(), kind_of<LostEvent>()));
  read_lost(of_totals_, 100);
  EXPECT_THAT(taken(), ElementsAre());
  EXPECT_EQ(reader_->counters().lost_records, 7U);
}

TEST_F(RecordReaderTest, CountsWhenTheKernelBeginsToThrottle) {
  for (const std::uint32_t type : {PERF_RECORD_THROTTLE, PERF_RECORD_UNTHROTTLE})
    read(RecordBuilder(type).u64(10).u64(of_task_).u64(of_task_).trailer(kRead, kRead, 10, 0, of_task_));
  EXPECT_EQ(reader_->counters().throttled, 1U);
  EXPECT_EQ(taken().size(), 2U);
}

TEST_F(RecordReaderTest, ReportsATaskOnceWhenItIsForkedAndWhenItEnds) {
  constexpr std::uint32_t kThread = kRead + 10;
  for (int time = 0; time < 2; ++time) read_task(PERF_RECORD_FORK, of_task_, kRead, kThread, kRead);
  EXPECT_THAT(taken(), ElementsAre(kind_of<ForkEvent>()));
  for (int time = 0; time < 2; ++time) read_task(PERF_RECORD_EXIT, of_task_, kRead, kThread, kRead);
  EXPECT_THAT(taken(), ElementsAre(kind_of<ExitEvent>()));
  EXPECT_EQ(mode_->tasks().size(), 1U);
}

TEST_F(RecordReaderTest, TotalsOfTasksThatDidNothingAreNotReported) {
  read_total(of_totals_, 0);
  EXPECT_THAT(taken(), ElementsAre());
  read_total(of_totals_, 1'234);
  EXPECT_THAT(taken(), ElementsAre(kind_of<TaskTotalEvent>()));
  EXPECT_EQ(total_, 1'234);
}

// A program that is set-user-ID: its events end after the record of its exec, before it maps anything.
TEST_F(RecordReaderTest, TellsAnExecThatEndsEventsFromTheEndOfAProcess) {
  read_comm(of_task_, kRead, true);
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kRead, 1);
  EXPECT_THAT(taken(), ElementsAre(kind_of<CommEvent>(), kind_of<DetachedEvent>()));
  EXPECT_TRUE(reader_->has_detached());
  EXPECT_TRUE(mode_->tasks().empty());
  EXPECT_EQ(reader_->notices().size(), 1U);
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kRead, 1);  // that of its other events
  EXPECT_THAT(taken(), ElementsAre());
  reader_->forget_ended_detached();
  EXPECT_FALSE(reader_->has_detached());
}

TEST_F(RecordReaderTest, AProcessThatHasMappedItsProgramEnds) {
  read_comm(of_task_, kRead, true);
  read_map(of_task_, kRead);
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kRead, 1);
  EXPECT_THAT(taken(), ElementsAre(kind_of<CommEvent>(), kind_of<MapEvent>(), kind_of<ExitEvent>()));
  EXPECT_FALSE(reader_->has_detached());
}

TEST_F(RecordReaderTest, ANewNameIsNoExec) {
  read_comm(of_task_, kRead, false);
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kRead, 1);
  EXPECT_THAT(taken(), ElementsAre(kind_of<CommEvent>(), kind_of<ExitEvent>()));
}

TEST_F(RecordReaderTest, OtherThreadsEndWhenOneExecutes) {
  constexpr std::uint32_t kThread = kRead + 10;
  read_task(PERF_RECORD_FORK, of_task_, kRead, kThread, kRead);
  read_comm(of_task_, kRead, true);
  EXPECT_EQ(mode_->tasks().size(), 1U);
  taken();
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kThread, kRead);
  EXPECT_THAT(taken(), ElementsAre()) << "it is no exec that ends events";
}

TEST_F(RecordReaderTest, MentionsTheFirstThreeProcessesThatLostTheirEvents) {
  for (std::uint32_t pid = kRead; pid < kRead + 5; ++pid) {
    mode_->tasks().add(tid_from(pid), pid_from(pid));
    read_comm(of_task_, pid, true);
    read_task(PERF_RECORD_EXIT, of_task_, pid, pid, 1);
  }
  EXPECT_EQ(reader_->notices().size(), 3U);
}

TEST_F(RecordReaderTest, ANumberThatIsForkedAnewIsAnotherProcess) {
  read_comm(of_task_, kRead, true);
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kRead, 1);
  read_task(PERF_RECORD_FORK, of_task_, kRead, kRead, 1);
  EXPECT_FALSE(reader_->has_detached());
  taken();
  read_task(PERF_RECORD_EXIT, of_task_, kRead, kRead, 1);
  EXPECT_THAT(taken(), ElementsAre(kind_of<ExitEvent>()));
}

TEST_F(RecordReaderTest, BelievesNotesOfPausesThatCanHaveBeen) {
  EventNote paused{.step = EventNote::Step::paused, .time = ~std::uint64_t{0}};
  events_->follow(paused, UniqueFd());
  EXPECT_TRUE(events_->is_paused());
  EXPECT_LE(events_->paused_at(), events_->clock().now());
  EventNote redirected{.step = EventNote::Step::redirected};
  events_->follow(redirected, UniqueFd());
  EXPECT_TRUE(events_->is_paused());
  read_sample(of_task_, kRead, events_->paused_at() + 1);
  EXPECT_THAT(taken(), ElementsAre()) << "of a task that was forked while events were switched off";
  read_sample(of_task_, kRead, events_->paused_at());
  EXPECT_THAT(taken(), ElementsAre(kind_of<SampleEvent>()));
  EventNote resumed{.step = EventNote::Step::resumed};
  events_->follow(resumed, UniqueFd());
  EXPECT_FALSE(events_->is_paused());
}

TEST_F(RecordReaderTest, AfterAChangeOfModeEachRecordCountsOnce) {
  if (!events_->plan().per_cpu) GTEST_SKIP() << "sampling CPUs needs privilege";
  mode_->follow_change(100);
  EXPECT_EQ(mode_->mode(), PerfMode::per_cpu);
  mode_->follow_change(200);  // it has changed already
  for (const std::uint64_t time : {99U, 100U}) {
    read_sample(of_task_, kRead, time);
    read_map(of_task_, kRead, time);
    read_comm(of_task_, kRead, false, time);
    EXPECT_EQ(taken().size(), time < 100 ? 3U : 0U);
    read_sample(of_cpu_, kRead, time);
    read_map(of_cpu_, kRead, time);
    read_comm(of_cpu_, kRead, false, time);
    EXPECT_EQ(taken().size(), time < 100 ? 0U : 3U);
  }
}

TEST_F(RecordReaderTest, ChildrenOfCountedTasksAreCountedFromThenOn) {
  TaskSet::Task* parent = mode_->tasks().find(tid_from(kRead));
  parent->is_counted = true;
  parent->counted_since = 100;
  EXPECT_TRUE(mode_->note_fork(tid_from(kRead + 1), pid_from(kRead + 1), tid_from(kRead), 99));
  EXPECT_TRUE(mode_->note_fork(tid_from(kRead + 2), pid_from(kRead + 2), tid_from(kRead), 100));
  EXPECT_FALSE(mode_->note_fork(tid_from(kRead + 2), pid_from(kRead + 2), tid_from(kRead), 100));
  EXPECT_TRUE(mode_->note_fork(tid_from(kRead + 3), pid_from(kRead + 3), tid_from(kNeighbour + 50), 100));
  EXPECT_FALSE(mode_->tasks().find(tid_from(kRead + 1))->is_counted);
  EXPECT_TRUE(mode_->tasks().find(tid_from(kRead + 2))->is_counted);
  EXPECT_FALSE(mode_->tasks().find(tid_from(kRead + 3))->is_counted);
}

TEST_F(RecordReaderTest, TheTargetHasEndedWithItsLastTask) {
  EXPECT_FALSE(mode_->have_all_ended());
  EXPECT_FALSE(mode_->note_exit(tid_from(kNeighbour), 10));
  EXPECT_TRUE(mode_->note_exit(tid_from(kRead), 10));
  EXPECT_TRUE(mode_->have_all_ended());
}

TEST_F(RecordReaderTest, EventsOfCpusGoOnWhereThoseOfATaskEnd) {
  EXPECT_FALSE(mode_->note_detached(pid_from(kRead))) << "there are none";
  EXPECT_FALSE(mode_->is_changing());
  if (!events_->plan().per_cpu) GTEST_SKIP() << "sampling CPUs needs privilege";
  SamplingMode may_change(target_, PerCpuUse::when_better, *events_);
  EXPECT_TRUE(may_change.note_detached(pid_from(kRead)));
  EXPECT_TRUE(may_change.is_changing());
  mode_->follow_change(100);
  mode_->tasks().find(tid_from(kRead))->is_counted = true;
  EXPECT_TRUE(mode_->note_detached(pid_from(kRead)));
  EXPECT_FALSE(mode_->tasks().find(tid_from(kRead))->is_counted) << "it is counted anew";
}

TEST(EventValue, IsScaledWhereACounterWasSharedOut) {
  const auto value_of = [](std::vector<std::uint64_t> fields, std::size_t bytes) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    EXPECT_EQ(::write(writer.get(), fields.data(), bytes), static_cast<ssize_t>(bytes));
    writer.reset();
    return read_event_value(reader.get());
  };
  EXPECT_EQ(value_of({100}, 8), 100) << "no times";
  EXPECT_EQ(value_of({100, 7, 7}, 24), 100);
  EXPECT_EQ(value_of({100, 8, 4}, 24), 200) << "half of the time";
  EXPECT_EQ(value_of({0, 8, 0}, 24), 0) << "it never ran";
  EXPECT_EQ(value_of({5, 8, 0}, 24), 5);
  EXPECT_EQ(value_of({100, 8}, 16), 100);
  EXPECT_EQ(value_of({100}, 4), 0);
  EXPECT_EQ(value_of({}, 0), 0);
}

}  // namespace
}  // namespace ddprof
