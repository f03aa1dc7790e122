#include "session/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <map>
#include <thread>

#include "base/clock.hpp"
#include "process/executed_child_fixture.hpp"
#include "session/fake_clock_fixture.hpp"
#include "session/kernel_times.hpp"

namespace ddprof {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

constexpr std::int64_t kPeriod = 10'101'010;
// Above any pid_max: /proc has nothing about it.
const Pid kPid{1 << 23};
const Tid kTid{1 << 23};

// Plays a script of events, one batch per call, and remembers that it was drained.
class ScriptedCollector final : public Collector, public Pausable, public RateControl {
 public:
  Result<void> collect(std::chrono::milliseconds, const EventHandler& handle) override {
    if (before_exec && batches.size() == 1) before_exec();
    for (const CollectorEvent& event : batches.front()) handle(event);
    batches.pop_front();
    return {};
  }
  Result<void> drain(const EventHandler& handle) override {
    is_drained = true;
    for (const CollectorEvent& event : rest) handle(event);
    return {};
  }
  Result<void> pause(const EventHandler& handle) override {
    if (!paused) paused = monotonic_now();
    for (const CollectorEvent& event : before_pause) handle(event);
    before_pause.clear();
    return {};
  }
  Result<void> resume() override {
    paused.reset();
    ++resumptions;
    return {};
  }
  [[nodiscard]] std::optional<Nanoseconds> paused_since() const override { return paused; }
  std::optional<std::int64_t> exact_total(std::uint32_t) override { return total; }
  bool is_finished() override { return batches.empty(); }
  [[nodiscard]] CollectorCounters counters() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "scripted"; }
  [[nodiscard]] std::vector<std::string> notices() const override { return {"a notice"}; }

  [[nodiscard]] CollectorScope scope() const override { return {.processes = followed}; }
  Pausable* pausable() override { return this; }
  RateControl* rate_control() override { return this; }
  void slow_down(std::uint32_t) override {}
  void deliver_at_once() override { ++hurries; }

  std::function<void()> before_exec;  // called before the last batch
  std::vector<Pid> followed;
  std::deque<std::vector<CollectorEvent>> batches;
  std::vector<CollectorEvent> rest;
  std::vector<CollectorEvent> before_pause;
  std::optional<std::int64_t> total;
  std::optional<Nanoseconds> paused;
  int resumptions = 0;
  int hurries = 0;
  bool is_drained = false;
};

class KeptProfiles final : public Destination {
 public:
  Result<Delivery> send(const Batch& batch) override {
    EXPECT_EQ(batch.sequence, profiles.size());
    profiles.push_back(batch.parts.front().profile);
    last = batch;
    if (is_broken) return make_error(ErrorCode::exhausted, "write x: disk full");
    return Delivery::arrived;
  }
  [[nodiscard]] std::string describe() const override { return "kept"; }

  std::vector<Profile> profiles;
  Batch last;
  bool is_broken = false;
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    options.events = {default_cpu_event()};
    options.target = Target::command(kPid);
  }

  static SampleEvent sample(Tid tid = kTid) {
    SampleEvent event;
    event.pid = kPid;
    event.tid = tid;
    event.value = kPeriod;
    event.has_registers = true;
    event.registers.pc = 0x1000;
    event.stack_requested = 8192;  // and nothing was copied: no stack there
    return event;
  }

  // In a function without a frame of its own.
  static SampleEvent of_this_process() {
    SampleEvent event = sample(Tid{::getpid()});
    event.pid = Pid{::getpid()};
    event.registers.pc = reinterpret_cast<std::uint64_t>(&::getppid);
    return event;
  }

  Summary run() {
    Session session(collector, destination, options);
    return session.run(stop);
  }

  // Sum of the cpu column by the name of the leaf frame.
  std::map<std::string, std::int64_t> by_leaf(std::size_t profile = 0) {
    std::map<std::string, std::int64_t> sums;
    const Profile& from = destination.profiles.at(profile);
    for (const ProfileSample& entry : from.samples) {
      const ProfileLocation& leaf = from.locations[entry.locations.front()];
      sums[std::string(from.text(from.functions[leaf.lines.front().function].name))] += entry.values.at(1);
    }
    return sums;
  }

  static std::vector<std::string> comments_of(const Profile& profile) {
    std::vector<std::string> texts;
    for (std::uint32_t comment : profile.comments) texts.emplace_back(profile.text(comment));
    return texts;
  }

  ScriptedCollector collector;
  KeptProfiles destination;
  SessionOptions options;
  std::atomic<bool> stop{false};
};

TEST_F(SessionTest, TheProfileAddsUpToWhatTheKernelCharged) {
  collector.batches = {{sample(), sample()}};
  collector.rest = {sample(Tid{7}), ExitEvent{kPid, Tid{7}, {}},
                    TaskTotalEvent{kPid, Tid{7}, 0, kPeriod + 5'000'000}};
  collector.total = 3 * kPeriod + 5'000'000 + 2'000'000;
  Summary summary = run();

  EXPECT_TRUE(collector.is_drained);
  ASSERT_EQ(destination.profiles.size(), 1U);
  std::int64_t sum = 0;
  for (const auto& [name, value] : by_leaf()) sum += value;
  EXPECT_EQ(sum, *collector.total);
  EXPECT_EQ(by_leaf()["[unsampled: shorter than a sampling period]"], 7'000'000);
  EXPECT_EQ(summary.stacks, 3U);
  EXPECT_EQ(summary.losses[Loss::unsampled], 7'000'000);
}

// What a hypervisor stole in one period does not hide what was lost in another.
TEST_F(SessionTest, TheProfileAddsUpWhenTimeWasStolenAndOtherTimeLost) {
  options.periods.length = std::chrono::seconds(0);
  options.charged_cpu.ask = [](std::int64_t counted, bool) { return counted - 2 * kPeriod; };
  options.observer.on_period = [this](const Summary&, const Summary&) { collector.total = 20 * kPeriod; };
  collector.total = 10 * kPeriod;
  collector.batches = {std::vector<CollectorEvent>(10, sample()), {sample(), sample()}};
  run();
  std::int64_t sum = 0;
  for (std::size_t profile = 0; profile < destination.profiles.size(); ++profile)
    for (const auto& [name, value] : by_leaf(profile)) sum += value;
  EXPECT_EQ(sum, (20 - 2) * kPeriod);
}

TEST_F(SessionTest, EstimatesAreScaledToTheExactTotal) {
  SampleEvent estimate = sample();
  estimate.basis = SampleBasis::cpu_period;
  collector.batches = {{estimate, estimate, estimate}};
  collector.total = 3 * kPeriod + 1'234'567;
  run();
  std::int64_t sum = 0;
  for (const auto& [name, value] : by_leaf()) sum += value;
  EXPECT_EQ(sum, *collector.total);
  EXPECT_FALSE(by_leaf().contains("[unsampled: shorter than a sampling period]"));
}

TEST_F(SessionTest, EachKindHasAProfileWithColumnsOfItsOwn) {
  EventSpec allocations = default_cpu_event();
  allocations.kind = EventSpec::Kind::allocation;
  allocations.label = "alloc-space";
  allocations.unit = "bytes";
  allocations.is_clock = false;
  allocations.frequency = 0;
  allocations.period = 524'288;
  options.events.push_back(allocations);
  SampleEvent allocation = sample();
  allocation.event = 1;
  allocation.value = 600'000;
  collector.batches = {{sample(), allocation, allocation}};
  collector.total = 3 * kPeriod;
  run();
  ASSERT_EQ(destination.last.parts.size(), 2U);
  const auto sums_of = [](const Batch::Part& part) {
    std::map<std::string, std::int64_t> sums;
    for (const ProfileSample& one : part.profile.samples)
      for (std::size_t i = 0; i < one.values.size(); ++i)
        sums[std::string(part.profile.text(part.profile.value_types[i].type))] += one.values[i];
    return sums;
  };
  using Sums = std::map<std::string, std::int64_t>;
  EXPECT_EQ(destination.last.parts[0].kind, "cpu");
  EXPECT_EQ(sums_of(destination.last.parts[0]), (Sums{{"samples", 1}, {"cpu", 3 * kPeriod}}));
  EXPECT_EQ(destination.last.parts[1].kind, "alloc");
  EXPECT_EQ(sums_of(destination.last.parts[1]), (Sums{{"alloc_objects", 2}, {"alloc-space", 1'200'000}}));
  EXPECT_EQ(destination.last.parts[1].profile.period, 524'288);
}

TEST_F(SessionTest, SamplesSayWhoseTheyWereBeforeAndAfterAnExec) {
  const ExecutedChild shop("DD_SERVICE=shop", "DD_SERVICE=bank");
  options.target = Target::whole_host();
  SampleEvent event = sample();
  event.pid = shop.pid();
  event.tid = Tid{to_int(shop.pid())};
  collector.before_exec = [&] { shop.become_next(); };
  std::vector<std::uint64_t> identifications;
  options.observer.on_sample = [&](const SampleEvent&, const BuiltStack&, const ProcessTable& processes,
                                   const FileRegistry&) {
    identifications.push_back(processes.identifications());
  };
  collector.batches = {{event, event}, {CommEvent{event.pid, event.tid, {}, true, "sleep"}, event, event}};
  run();
  ASSERT_EQ(destination.profiles.size(), 1U);
  const Batch& batch = destination.last;
  std::map<std::string, std::int64_t> samples;
  for (const ProfileSample& one : batch.parts[0].profile.samples)
    samples[batch.processes.at(one.process).service] += one.values[0];
  EXPECT_EQ(samples["shop"], 2);
  EXPECT_EQ(samples["bank"], 2);
  EXPECT_EQ(batch.processes.size(), 3U);
  EXPECT_EQ(identifications, (std::vector<std::uint64_t>{1, 1, 2, 2})) << "once per exec";
}

TEST_F(SessionTest, AnIncompleteStackEndsInItsReason) {
  collector.batches = {{sample()}};
  Summary summary = run();
  ASSERT_EQ(summary.stopped.size(), 1U);
  EXPECT_EQ(summary.stopped.begin()->first.first, StopReason::unknown_code);
  const Profile& profile = destination.profiles.front();
  const ProfileLocation& root = profile.locations[profile.samples.front().locations.back()];
  EXPECT_EQ(profile.text(profile.functions[root.lines.front().function].name), "[truncated: unknown code]");
}

TEST_F(SessionTest, SamplesCarryNamesOfThreadAndProcess) {
  collector.batches = {{CommEvent{kPid, kTid, {}, true, "server"}, ForkEvent{kPid, kPid, Tid{9}, kTid, {}},
                        CommEvent{kPid, Tid{9}, {}, false, "worker"}, sample(Tid{9}),
                        ExitEvent{kPid, Tid{9}, {}}}};
  run();
  const Profile& profile = destination.profiles.front();
  std::map<std::string, std::string> labels;
  for (const ProfileLabel& label : profile.samples.front().labels) {
    labels[std::string(profile.text(label.key))] =
        label.text != 0 ? std::string(profile.text(label.text)) : std::to_string(label.number);
  }
  EXPECT_EQ(labels["thread name"], "worker");
  EXPECT_EQ(labels["thread id"], "9");
  EXPECT_EQ(labels["process name"], "server");
  EXPECT_EQ(labels["pid"], std::to_string(to_int(kPid)));
}

TEST_F(SessionTest, TheProgramOfTheBusiestProcessIsTheFirstMapping) {
  const auto map = [](Pid pid, std::uint64_t start, std::string_view path) {
    return MapEvent{.pid = pid, .start = Address{start}, .length = 0x1000, .inode = start, .path = path};
  };
  const Pid busy{(1 << 23) + 1};
  SampleEvent of_busy = sample(Tid{to_int(busy)});
  of_busy.pid = busy;
  // All samples are in the library, which comes last.
  collector.batches = {{map(kPid, 0x8000, "/bin/idle"), map(kPid, 0x1000, "/lib/libc.so"),
                        map(busy, 0x9000, "/bin/busy"), map(busy, 0x1000, "/lib/libc.so"), sample(), of_busy,
                        of_busy}};
  run();
  const Profile& profile = destination.profiles.front();
  std::vector<std::string> paths;
  for (const ProfileMapping& mapping : profile.mappings) paths.emplace_back(profile.text(mapping.path));
  EXPECT_THAT(paths, ::testing::ElementsAre("/bin/busy", "/bin/idle", "/lib/libc.so"));
}

TEST_F(SessionTest, AFailingDestinationIsInTheSummary) {
  destination.is_broken = true;
  collector.batches = {{sample()}};
  Summary summary = run();
  EXPECT_EQ(summary.failed, 1U);
  ASSERT_TRUE(summary.exported.first_error);
  EXPECT_NE(render_summary(summary).find("disk full"), std::string::npos);
}

TEST_F(SessionTest, APeriodBeginsWhereTheOneBeforeItEnded) {
  options.periods.length = std::chrono::seconds(0);
  collector.batches = {{sample()}, {sample()}, {sample()}};
  run();
  ASSERT_GE(destination.profiles.size(), 3U);
  for (std::size_t i = 1; i < destination.profiles.size(); ++i) {
    const Profile& before = destination.profiles[i - 1];
    EXPECT_EQ(before.time_ns + before.duration_ns, destination.profiles[i].time_ns);
  }
}

// A window of no length ends with the first look, and the next one begins with the look after that.
TEST_F(SessionTest, AProfileEndsWhereThePauseBegins) {
  options.periods.length = std::chrono::seconds(3600);
  options.periods.window = std::chrono::seconds(0);
  collector.batches = {{sample()}, {}, {}};
  collector.before_pause = {sample(), sample()};
  Summary summary = run();
  ASSERT_EQ(destination.profiles.size(), 1U);
  const Profile& profile = destination.profiles.front();
  EXPECT_EQ(by_leaf().begin()->second, 3 * kPeriod);
  EXPECT_LT(profile.duration_ns, 60'000'000'000);
  EXPECT_EQ(summary.observed.count(), profile.duration_ns);
  EXPECT_THAT(render_summary(summary), HasSubstr("  looked at  "));
  ASSERT_TRUE(collector.paused);
  EXPECT_EQ(collector.resumptions, 0);
  EXPECT_THAT(comments_of(profile), Contains(HasSubstr("of a period of 3600 s")));
}

TEST_F(SessionTest, WhatTheKernelChargesInPausesDoesNotCount) {
  options.periods.length = std::chrono::seconds(3600);
  options.periods.window = std::chrono::seconds(0);
  options.charged_cpu.ask = [](std::int64_t counted, bool) { return counted + 100 * kPeriod; };
  options.target = Target::command(Pid{::getpid()});
  collector.batches = {std::vector<CollectorEvent>(10, sample()), {}};
  collector.total = 10 * kPeriod;
  run();
  std::int64_t sum = 0;
  for (const auto& [name, value] : by_leaf()) sum += value;
  EXPECT_EQ(sum, *collector.total);
}

TEST_F(SessionTest, KnowsTheProcessesThatWereThereBefore) {
  options.target = Target::process(Pid{::getppid()});
  collector.followed = {Pid{::getppid()}, Pid{::getpid()}};
  SampleEvent of_child = sample(Tid{::gettid()});
  of_child.pid = Pid{::getpid()};
  of_child.registers.pc = reinterpret_cast<std::uint64_t>(&::getppid);
  collector.batches = {{of_child}, {}};
  collector.total = kPeriod;
  const Summary summary = run();
  EXPECT_THAT(by_leaf(), Not(Contains(Key(HasSubstr("unknown code")))));
  EXPECT_THAT(render_summary(summary), HasSubstr("was idle: all samples are of 1 process that it started"));
}

TEST_F(SessionTest, AWorkerThatComesInAPauseGoesOnWithIt) {
  Continuity continuity;
  options.worker.continuity = &continuity;
  options.periods.length = std::chrono::seconds(3600);
  options.periods.window = std::chrono::seconds(0);
  options.periods.per_worker = 1;
  collector.batches = {{sample()}, {}, {}, {}};
  EXPECT_EQ(run().ending, WorkerEnd::scheduled);
  const Nanoseconds pause_began = *collector.paused;
  EXPECT_GT(Nanoseconds(continuity.handover().period_started), pause_began + std::chrono::seconds(3000));

  EXPECT_EQ(run().ending, WorkerEnd::none);
  EXPECT_EQ(collector.resumptions, 0);
  EXPECT_EQ(collector.paused, pause_began);
  EXPECT_EQ(destination.profiles.size(), 1U);
}

// The first worker has paused and died before anyone had its profile: the time is lost, and told.
TEST_F(SessionTest, AProfileThatDiedWithItsWorkerIsTold) {
  Continuity continuity;
  options.worker.continuity = &continuity;
  options.periods.length = std::chrono::seconds(3600);
  options.periods.window = std::chrono::seconds(1);
  SessionHandover handover;
  const Nanoseconds start = monotonic_now() - std::chrono::seconds(20);
  handover.started = handover.period_started = start.count();
  continuity.commit(handover);
  collector.paused = start + std::chrono::seconds(1);
  collector.total = 50 * kPeriod;
  collector.batches = {{}, {}};
  run();
  ASSERT_EQ(destination.profiles.size(), 1U);
  EXPECT_EQ(destination.profiles.front().duration_ns, 1'000'000'000);
  EXPECT_GT(by_leaf()["[lost: a worker of the profiler ended]"], 45 * kPeriod);
}

TEST_F(SessionTest, StopsWhenAskedAndStillSendsWhatItHas) {
  stop = true;
  collector.batches = {{sample()}};
  collector.rest = {sample()};
  Summary summary = run();
  EXPECT_EQ(summary.stacks, 1U);
  EXPECT_EQ(destination.profiles.size(), 1U);
}

TEST_F(SessionTest, APeriodClosesWhenItsTimeHasCome) {
  FakeClock clock;
  options.clock = &clock;
  options.periods.length = std::chrono::seconds(60);
  options.observer.on_sample = [&](const SampleEvent&, const BuiltStack&, const ProcessTable&,
                                   const FileRegistry&) { clock.time += std::chrono::seconds(1); };
  for (int batch = 0; batch < 130; ++batch) collector.batches.push_back({sample()});
  const Summary summary = run();
  ASSERT_EQ(destination.profiles.size(), 3U);
  EXPECT_EQ(destination.profiles[0].duration_ns, 60'000'000'000);
  EXPECT_EQ(destination.profiles[1].duration_ns, 60'000'000'000);
  EXPECT_EQ(destination.profiles[2].duration_ns, 10'000'000'000);
  EXPECT_EQ(destination.profiles[0].time_ns, (FakeClock::kUnixAtZero + std::chrono::seconds(1)).count());
  EXPECT_EQ(summary.duration, std::chrono::seconds(130));
}

TEST_F(SessionTest, APeriodClosesBeforeItsTimeWhenAsked) {
  Continuity continuity;
  FakeClock clock;
  options.clock = &clock;
  options.worker.continuity = &continuity;
  options.periods.length = std::chrono::seconds(60);
  std::uint32_t samples = 0;
  options.worker.flushes_wanted = [&] { return samples / 4; };
  options.observer.on_sample = [&](const SampleEvent&, const BuiltStack&, const ProcessTable&,
                                   const FileRegistry&) {
    ++samples;
    clock.time += std::chrono::seconds(1);
  };
  for (int batch = 0; batch < 9; ++batch) collector.batches.push_back({sample()});
  run();
  ASSERT_EQ(destination.profiles.size(), 3U);
  EXPECT_EQ(destination.profiles[0].duration_ns, 4'000'000'000);
  EXPECT_EQ(destination.profiles[1].duration_ns, 4'000'000'000);
  EXPECT_EQ(destination.profiles[2].duration_ns, 1'000'000'000);
  EXPECT_EQ(continuity.flushes, 2U);
  EXPECT_EQ(continuity.flushed_sequence, 2U);
  EXPECT_EQ(continuity.handover().sequence, 3U);
}

TEST_F(SessionTest, AProfileOfTheWholeRunIsNotClosedBefore) {
  options.worker.flushes_wanted = [] { return 1U; };
  collector.batches = {{sample()}, {sample()}};
  run();
  EXPECT_EQ(destination.profiles.size(), 1U);
}

TEST_F(SessionTest, CountersGoOnFromWorkerToWorker) {
  Continuity continuity;
  options.worker.continuity = &continuity;
  options.periods.length = std::chrono::seconds(0);
  options.periods.per_worker = 1;
  collector.batches = {{sample()}, {sample(), sample()}};
  EXPECT_EQ(run().ending, WorkerEnd::scheduled);
  const Summary summary = run();
  EXPECT_EQ(summary.stacks, 3U);
  EXPECT_EQ(summary.sent, destination.profiles.size());
}

TEST_F(SessionTest, SaysThatItReachedItsCpuBudgetAndNotEachTime) {
  std::vector<std::string> said;
  options.limits.cpu = 0.0001;
  options.observer.say_notice = [&](const std::string& text) { said.push_back(text); };
  FakeClock clock;
  options.clock = &clock;
  options.observer.on_sample = [&](const SampleEvent&, const BuiltStack&, const ProcessTable&,
                                   const FileRegistry&) {
    clock.time += std::chrono::milliseconds(50);
    clock.cpu += std::chrono::milliseconds(50);
  };
  for (int batch = 0; batch < 45; ++batch) collector.batches.push_back({sample()});
  EXPECT_GT(run().slow_down, 1U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], testing::MatchesRegex("--max-cpu 0 is reached: one of [0-9]+ samples is taken"));
}

TEST_F(SessionTest, OnlyDeepStacksAreWantedAtOnce) {
  options.most_waiting = std::chrono::milliseconds(300);  // for files, instead of postponing the sample
  collector.batches = {{sample()}, {}};
  run();
  EXPECT_EQ(collector.hurries, 0);
  SampleEvent deep = of_this_process();
  deep.stack_requested = 0;  // all that was asked for was copied, and the return address is not in it
  collector.batches = {{deep}, {}};
  destination.profiles.clear();
  const Summary summary = run();
  EXPECT_EQ(summary.stopped.begin()->first.first, StopReason::truncated_copy);
  EXPECT_EQ(collector.hurries, 2);
}

TEST_F(SessionTest, WorkersThatEndedAreInTheSummary) {
  Continuity continuity;
  for (std::size_t end = 0; end < kWorkerEnds; ++end) continuity.ends[end] = static_cast<std::uint32_t>(end);
  options.worker.continuity = &continuity;
  collector.batches = {{}};
  EXPECT_THAT(run().worker_ends, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(SessionTest, AWorkerThatIsReplacedLeavesTheEndToTheNext) {
  stop = true;
  for (const bool is_replaced : {false, true}) {
    destination.profiles.clear();
    collector = ScriptedCollector();
    options.worker.is_replaced = [=] { return is_replaced; };
    const Summary summary = run();
    EXPECT_EQ(summary.ending, is_replaced ? WorkerEnd::scheduled : WorkerEnd::none);
    EXPECT_EQ(collector.is_drained, !is_replaced);
    EXPECT_EQ(destination.profiles.size(), is_replaced ? 0U : 1U) << "nothing was sampled";
  }
}

TEST_F(SessionTest, AWorkerThatTakesTooMuchMemoryEnds) {
  FakeClock clock;
  options.clock = &clock;
  options.limits.memory = 1;
  options.observer.on_sample = [&](const SampleEvent&, const BuiltStack&, const ProcessTable&,
                                   const FileRegistry&) { clock.time += std::chrono::seconds(1); };
  for (int batch = 0; batch < 5; ++batch) collector.batches.push_back({sample()});
  const Summary summary = run();
  EXPECT_EQ(summary.ending, WorkerEnd::memory);
  EXPECT_EQ(summary.stacks, 2U) << "caches were given up first";
  EXPECT_EQ(destination.profiles.size(), 1U) << "what it had is not lost";
}

TEST_F(SessionTest, ProgressIsToldOnceASecond) {
  FakeClock clock;
  options.clock = &clock;
  options.observer.on_sample = [&](const SampleEvent&, const BuiltStack&, const ProcessTable&,
                                   const FileRegistry&) { clock.time += std::chrono::milliseconds(250); };
  int told = 0;
  options.observer.on_progress = [&](const Summary& summary) {
    EXPECT_GT(summary.stacks, 0U);
    ++told;
  };
  for (int batch = 0; batch < 9; ++batch) collector.batches.push_back({sample()});
  run();
  EXPECT_EQ(told, 3);  // after 0.25, 1.25 and 2.25 s
}

// The frames of samples as they were built, and why their stacks end.
class SampleStacksTest : public SessionTest {
 protected:
  SampleStacksTest() {
    options.observer.on_sample = [this](const SampleEvent&, const BuiltStack& stack, const ProcessTable&,
                                        const FileRegistry&) {
      frames.emplace_back(stack.frames.begin(), stack.frames.end());
      reasons.push_back(stack.reason);
    };
  }
  std::vector<std::vector<Frame>> frames;
  std::vector<StopReason> reasons;
};

TEST_F(SampleStacksTest, AnEngineThatUnwindsGivesReturnAddresses) {
  const std::vector<std::uint64_t> chain{0x1010, 0x1020, 0x9000};
  SampleEvent event = sample();
  event.has_registers = false;
  event.user_chain = chain;
  collector.batches = {
      {MapEvent{.pid = kPid, .start = {0x1000}, .length = 0x1000, .inode = 1, .path = "/bin/x"}, event}};
  run();
  ASSERT_EQ(frames.at(0).size(), 3U);
  EXPECT_EQ(frames[0][0].address, 0x10U) << "of the file";
  EXPECT_NE(frames[0][0].file, FileId::none);
  EXPECT_EQ(frames[0][1].address, 0x1fU) << "into the call";
  EXPECT_EQ(frames[0][2].address, 0x8fffU);
  EXPECT_EQ(frames[0][2].file, FileId::none);
  EXPECT_EQ(reasons.at(0), StopReason::complete);
}

TEST_F(SampleStacksTest, OnlyExecutableMappingsAreCode) {
  const std::vector<std::uint64_t> chain{0x1010};
  SampleEvent event = sample();
  event.user_chain = chain;
  collector.batches = {{MapEvent{.pid = kPid,
                                 .start = {0x1000},
                                 .length = 0x1000,
                                 .inode = 1,
                                 .is_executable = false,
                                 .path = "/x"},
                        event}};
  run();
  EXPECT_EQ(frames.at(0).at(0).file, FileId::none);
}

TEST_F(SampleStacksTest, AnEngineThatUnwindsMayGiveTooManyFrames) {
  const std::vector<std::uint64_t> chain(Unwinder::kMaxFrames + 1, 0x1010);
  SampleEvent event = sample();
  event.user_chain = std::span(chain).first(Unwinder::kMaxFrames);
  collector.batches = {{event}};
  event.user_chain = chain;
  collector.batches.front().push_back(event);
  run();
  EXPECT_EQ(reasons.at(0), StopReason::complete);
  EXPECT_EQ(reasons.at(1), StopReason::depth_limit);
  EXPECT_EQ(frames.at(1).size(), Unwinder::kMaxFrames + 1U) << "and a frame that says so";
}

// No record told what this process had mapped before.
TEST_F(SampleStacksTest, CodeThatNoRecordToldOfIsReadFromProc) {
  const std::vector<std::uint64_t> chain{reinterpret_cast<std::uint64_t>(&::getppid)};
  SampleEvent event = of_this_process();
  event.user_chain = chain;
  collector.batches = {{CommEvent{event.pid, event.tid, {}, true, "me"}, event}};
  run();
  ASSERT_EQ(frames.at(0).size(), 1U);
  EXPECT_NE(frames[0][0].file, FileId::none);
}

TEST_F(SampleStacksTest, WithoutRegistersTheKernelsFramesAreAll) {
  const std::vector<std::uint64_t> chain{0xffffffff81000000};
  SampleEvent event = sample();
  event.has_registers = false;
  collector.batches = {{event}};
  event.kernel_chain = chain;
  collector.batches.front().push_back(event);
  run();
  EXPECT_EQ(reasons, (std::vector{StopReason::no_registers, StopReason::complete}));
  ASSERT_EQ(frames.at(1).size(), 1U);
  EXPECT_EQ(frames[1][0].kind, FrameKind::kernel);
}

TEST_F(SampleStacksTest, OfTheProfilerItselfAHundredASecondAreUnwound) {
  SampleEvent event = of_this_process();
  collector.batches = {std::vector<CollectorEvent>(101, event)};
  event.time = std::chrono::seconds(1);
  collector.batches.front().emplace_back(event);
  run();
  ASSERT_EQ(reasons.size(), 102U);
  EXPECT_NE(reasons[99], StopReason::own_process);
  EXPECT_EQ(reasons[100], StopReason::own_process);
  EXPECT_NE(reasons[101], StopReason::own_process);
}

TEST(StolenTime, IsInTheFirstLine) {
  std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
  EXPECT_EQ(parse_stolen_time("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0 0 0 0 0 0 0 0 0\n"), (6 + 7 + 8) * tick);
  EXPECT_EQ(parse_stolen_time("cpu  1 2 3 4\n"), 0);  // before Linux 2.6.11
  EXPECT_EQ(parse_stolen_time(""), 0);
  EXPECT_GE(stolen_time(), 0);
}

}  // namespace
}  // namespace ddprof
