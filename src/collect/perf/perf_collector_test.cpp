#include "collect/perf/perf_collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/unique_fd.hpp"
#include "collect/perf/perf_event.hpp"

// With the real kernel and small processes whose truth is known.

namespace ddprof {
namespace {

using std::chrono::milliseconds;

std::int64_t cpu_time_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void burn(milliseconds cpu, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  std::int64_t end = cpu_time_ns(clock) + std::chrono::nanoseconds(cpu).count();
  while (cpu_time_ns(clock) < end)
    for (int i = 0; i < 20'000; ++i) asm volatile("");
}

// A child that waits for go() before it plays its part.
class Puppet {
 public:
  explicit Puppet(const std::function<void()>& part) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    UniqueFd start(ends[0]);
    go_ = UniqueFd(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    go_.reset();
    char byte = 0;
    if (::read(start.get(), &byte, 1) == 1) part();
    ::_exit(0);
  }
  Puppet(const Puppet&) = delete;
  Puppet& operator=(const Puppet&) = delete;
  ~Puppet() {
    if (is_reaped_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] Pid pid() const { return Pid{pid_}; }
  void go() { EXPECT_EQ(::write(go_.get(), "x", 1), 1); }
  // CPU time of the process and the children that it waited for.
  std::int64_t wait_for_cpu_ns() {
    rusage usage{};
    ::wait4(pid_, nullptr, 0, &usage);
    is_reaped_ = true;
    auto to_ns = [](const timeval& time) {
      return (std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000;
    };
    return to_ns(usage.ru_utime) + to_ns(usage.ru_stime);
  }

 private:
  pid_t pid_ = 0;
  UniqueFd go_;
  bool is_reaped_ = false;
};

// Everything that came out of a collector.
struct Seen {
  std::map<std::int32_t, std::int64_t> sampled_by_tid, total_by_tid, ticks_by_tid;
  std::set<std::int32_t> sampled_pids, exited_tids, forked_tids;
  std::int64_t sampled = 0, ticks = 0;
  std::uint64_t lost = 0;
  std::size_t samples = 0, estimates = 0, with_registers = 0, with_stack = 0, maps = 0, execs = 0,
              out_of_order = 0;
  Nanoseconds last{};

  void operator()(const CollectorEvent& event) {
    std::visit([&](const auto& any) { note(any); }, event);
  }

 private:
  void note(const DetachedEvent&) {}
  void note(const SampleEvent& sample) {
    if (sample.time < last) ++out_of_order;
    last = sample.time;
    ++samples;
    estimates += sample.basis == SampleBasis::cpu_period ? 1U : 0U;
    sampled += sample.value;
    sampled_by_tid[to_int(sample.tid)] += sample.value;
    sampled_pids.insert(to_int(sample.pid));
    if (sample.has_registers && sample.registers.pc != 0 && sample.registers.sp != 0) ++with_registers;
    if (!sample.stack.empty()) ++with_stack;
  }
  void note(const MapEvent&) { ++maps; }
  void note(const ForkEvent& fork) { forked_tids.insert(to_int(fork.tid)); }
  void note(const CommEvent& comm) { execs += comm.is_exec ? 1U : 0U; }
  void note(const ExitEvent& exit) { exited_tids.insert(to_int(exit.tid)); }
  void note(const TaskTotalEvent& total) { total_by_tid[to_int(total.tid)] += total.value; }
  void note(const LostEvent& event) { lost += event.records; }
  void note(const ThrottleEvent&) {}
  void note(const TickEvent& tick) {
    ticks += tick.value;
    ticks_by_tid[to_int(tick.tid)] += tick.value;
  }
};

// The clock of an event also runs while the hypervisor or an interrupt has the CPU, which rusage leaves out:
// nothing on a quiet machine, a lot on a crowded one.
std::int64_t total_ceiling(std::int64_t rusage_ns) { return rusage_ns * 2; }

EventSpec cpu_event(std::uint64_t frequency) {
  EventSpec spec;
  spec.name = "sCPU";
  spec.unit = "nanoseconds";
  spec.config = PERF_COUNT_SW_TASK_CLOCK;
  spec.is_clock = true;
  spec.frequency = frequency;
  return spec;
}

PerfOptions options_at(std::uint64_t frequency) {
  PerfOptions options;
  options.events = {cpu_event(frequency)};
  return options;
}

bool may_sample_cpus() {
  return open_perf_event(cpu_sampling_attr(cpu_event(99), {.config = PERF_COUNT_SW_CPU_CLOCK}), -1, 0,
                         "probe")
      .ok();
}

// Collects until `is_enough`, or long after any sane machine would have got there.
void collect_until(PerfCollector& collector, Seen& seen, const std::function<bool()>& is_enough) {
  EventHandler handle = std::ref(seen);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!is_enough() && std::chrono::steady_clock::now() < deadline)
    ASSERT_TRUE(collector.collect(milliseconds(20), handle).ok());
}

void collect_to_end(PerfCollector& collector, Seen& seen) {
  collect_until(collector, seen, [&] { return collector.is_finished(); });
  EXPECT_TRUE(collector.is_finished());
  ASSERT_TRUE(collector.drain(std::ref(seen)).ok());
}

#define OPEN_OR_SKIP(collector, target, options)                                                   \
  auto collector##_opened = PerfCollector::open(target, options);                                  \
  if (!collector##_opened.ok() && collector##_opened.error().code == ErrorCode::permission_denied) \
    GTEST_SKIP() << collector##_opened.error().message << "; " << collector##_opened.error().hint; \
  ASSERT_TRUE(collector##_opened.ok()) << collector##_opened.error().message;                      \
  PerfCollector& collector = **collector##_opened

TEST(PerfCollector, SamplesACommandFromItsExecOn) {
  Puppet puppet([] {
    burn(milliseconds(30));  // before exec: must not be seen
    ::execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", nullptr);
  });
  OPEN_OR_SKIP(collector, Target::command(puppet.pid()), options_at(499));
  Seen seen;
  puppet.go();
  collect_to_end(collector, seen);
  std::int64_t rusage_ns = puppet.wait_for_cpu_ns();
  EXPECT_EQ(seen.execs, 1U);
  EXPECT_GT(seen.maps, 1U);
  EXPECT_GT(seen.samples, 5U);
  EXPECT_EQ(seen.with_registers, seen.samples);
  EXPECT_EQ(seen.estimates, 0U);
  EXPECT_EQ(seen.with_stack, seen.samples);
  EXPECT_THAT(seen.sampled_pids, ::testing::ElementsAre(to_int(puppet.pid())));
  EXPECT_EQ(seen.out_of_order, 0U);
  EXPECT_EQ(collector.counters().malformed_records, 0U);
  ASSERT_TRUE(collector.exact_total(0));
  EXPECT_GE(*collector.exact_total(0), seen.sampled);
  EXPECT_LT(*collector.exact_total(0), total_ceiling(rusage_ns));
}

TEST(PerfCollector, AddsUpToWhatTheKernelCharged) {
  // The kernel closes events before it takes the memory of a process apart, which takes milliseconds under
  // sanitizers.
  constexpr std::int64_t kLastMoments = 10'000'000;
  Puppet puppet([] { burn(milliseconds(400)); });
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options_at(99));
  Seen seen;
  puppet.go();
  collect_to_end(collector, seen);
  std::int64_t rusage_ns = puppet.wait_for_cpu_ns();
  ASSERT_TRUE(collector.exact_total(0));
  EXPECT_GE(*collector.exact_total(0), rusage_ns - kLastMoments);
  EXPECT_LT(*collector.exact_total(0), total_ceiling(rusage_ns));
}

TEST(PerfCollector, KnowsTheExactTimeOfTasksTooShortToBeSampled) {
  constexpr int kChildren = 40;
  Puppet puppet([] {
    for (int i = 0; i < kChildren; ++i) {
      if (pid_t child = ::fork(); child == 0) {
        burn(milliseconds(2));
        ::_exit(0);
      } else {
        ::waitpid(child, nullptr, 0);
      }
    }
  });
  PerfOptions options = options_at(99);
  options.per_cpu = PerCpuUse::never;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  Seen seen;
  puppet.go();
  collect_to_end(collector, seen);
  std::int64_t reported = 0;
  for (const auto& [tid, total] : seen.total_by_tid) reported += total;
  ASSERT_TRUE(collector.exact_total(0));
  EXPECT_EQ(seen.forked_tids.size(), std::size_t{kChildren});
  // The kernel lets one task of the family keep the original event, which reports no total of its own.
  EXPECT_GE(seen.total_by_tid.size(), std::size_t{kChildren});
  EXPECT_LE(reported, *collector.exact_total(0));
  EXPECT_GE(*collector.exact_total(0), std::int64_t{kChildren} * 2'000'000);
}

TEST(PerfCollector, SamplesEveryOneOfManyThreads) {
  constexpr std::size_t kThreads = 50;
  Puppet puppet([] {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([] { burn(milliseconds(60'000)); });
    for (std::thread& thread : threads) thread.join();
  });
  puppet.go();
  PerfOptions options = options_at(999);
  options.stack_bytes = 1024;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  Seen seen;
  collect_until(collector, seen, [&] { return seen.sampled_by_tid.size() >= kThreads; });
  EXPECT_GE(seen.sampled_by_tid.size(), kThreads);
  EXPECT_EQ(collector.mode(), PerfMode::per_task);
  EXPECT_FALSE(collector.is_finished());
  ASSERT_TRUE(collector.drain(std::ref(seen)).ok());
  // A thread that was attached and inherited at once would be sampled twice.
  EXPECT_LE(seen.sampled, *collector.exact_total(0) * 11 / 10);
}

TEST(PerfCollector, SamplesNoThreadTwiceWhenThreadsComeAndGoWhileItAttaches) {
  Puppet puppet([] {
    for (int i = 0; i < 100'000; ++i) {
      std::thread first([] { burn(milliseconds(4)); });
      std::thread second([] { burn(milliseconds(4)); });
      first.join();
      second.join();
    }
  });
  puppet.go();
  PerfOptions options = options_at(999);
  options.per_cpu = PerCpuUse::never;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  Seen seen;
  collect_until(collector, seen, [&] { return seen.samples >= 100; });
  ASSERT_TRUE(collector.drain(std::ref(seen)).ok());
  EXPECT_LE(seen.sampled, *collector.exact_total(0) * 21 / 20);
  EXPECT_EQ(collector.counters().malformed_records, 0U);
}

TEST(PerfCollector, FollowsADaemonThatOutlivesItsParent) {
  Puppet puppet([] {
    if (::fork() != 0) ::_exit(0);
    ::setsid();
    burn(milliseconds(60));
    ::_exit(0);
  });
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options_at(499));
  Seen seen;
  puppet.go();
  puppet.wait_for_cpu_ns();
  collect_to_end(collector, seen);
  EXPECT_GE(*collector.exact_total(0), 59'000'000);
  EXPECT_EQ(seen.exited_tids.size(), 2U);
}

// A process with children that are there before the collector is, and what they were told to do.
class Family {
 public:
  // Each entry is a process: the number of its parent among them (0: the first), and its part.
  struct Member {
    std::size_t parent = 0;
    std::function<void()> part;
  };
  explicit Family(const std::vector<Member>& members) : members_(members) {
    pids_ = static_cast<std::atomic<std::int32_t>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    head_.emplace([this] { live(); });
    head_->go();
    for (std::size_t i = 0; i <= members_.size(); ++i)
      while (pids_[i] == 0) std::this_thread::sleep_for(milliseconds(1));
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;
  ~Family() {
    head_.reset();
    ::munmap(pids_, 4096);
  }

  [[nodiscard]] Pid pid(std::size_t member) const { return Pid{pids_[member].load()}; }  // 0: the first

 private:
  // A child goes on with the list: its own children are behind it.
  void live() {
    std::size_t self = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].parent != self || ::fork() != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      self = i + 1;
    }
    pids_[self] = ::getpid();
    if (self > 0) members_[self - 1].part();
    while (true) ::pause();
  }

  std::vector<Member> members_;
  std::atomic<std::int32_t>* pids_ = nullptr;
  std::optional<Puppet> head_;
};

void burn_long() { burn(milliseconds(60'000)); }

TEST(PerfCollector, SamplesChildrenThatWereThereBefore) {
  Family family({{0, burn_long}, {1, burn_long}, {0, [] { ::pause(); }}});
  for (PerCpuUse use : {PerCpuUse::never, PerCpuUse::always}) {
    if (use == PerCpuUse::always && !may_sample_cpus()) continue;
    PerfOptions options = options_at(499);
    options.per_cpu = use;
    OPEN_OR_SKIP(collector, Target::process(family.pid(0)), options);
    EXPECT_THAT(collector.scope().processes,
                ::testing::UnorderedElementsAre(family.pid(0), family.pid(1), family.pid(2), family.pid(3)));
    Seen seen;
    collect_until(collector, seen, [&] { return seen.sampled_pids.size() >= 2 && seen.samples >= 100; });
    EXPECT_THAT(seen.sampled_pids,
                ::testing::UnorderedElementsAre(to_int(family.pid(1)), to_int(family.pid(2))));
    ASSERT_TRUE(collector.drain(std::ref(seen)).ok());
    ASSERT_TRUE(collector.exact_total(0));
    if (use == PerCpuUse::never) {
      EXPECT_LE(seen.sampled, *collector.exact_total(0));
    }
    EXPECT_FALSE(collector.is_finished());
    EXPECT_THAT(collector.scope().refused, ::testing::IsEmpty());
  }
}

TEST(PerfCollector, SamplesTheNamedProcessesAlone) {
  Family family({{0, burn_long}, {0, [] {
                                    while (true) {
                                      if (pid_t child = ::fork(); child == 0) {
                                        burn(milliseconds(5));
                                        ::_exit(0);
                                      } else {
                                        ::waitpid(child, nullptr, 0);
                                      }
                                      std::thread([] { burn(milliseconds(5)); }).join();
                                    }
                                  }}});
  for (PerCpuUse use : {PerCpuUse::never, PerCpuUse::always}) {
    if (use == PerCpuUse::always && !may_sample_cpus()) continue;
    PerfOptions options = options_at(499);
    options.per_cpu = use;
    OPEN_OR_SKIP(collector, Target::processes({family.pid(0), family.pid(2)}, false), options);
    EXPECT_THAT(collector.scope().processes, ::testing::UnorderedElementsAre(family.pid(0), family.pid(2)));
    Seen seen;
    collect_until(collector, seen, [&] { return seen.samples >= 50; });
    EXPECT_THAT(seen.sampled_pids,
                ::testing::ElementsAre(to_int(family.pid(2))));  // its threads, not its children
    EXPECT_GT(seen.sampled_by_tid.size(), 1U);
    EXPECT_THAT(collector.scope().processes, ::testing::UnorderedElementsAre(family.pid(0), family.pid(2)));
  }
}

TEST(PerfCollector, EndsWhenTheLastOfSeveralProcessesHasEnded) {
  Puppet first([] { burn(milliseconds(20)); });
  Puppet second([] { burn(milliseconds(20)); });
  OPEN_OR_SKIP(collector, Target::processes({first.pid(), second.pid()}, true), options_at(499));
  Seen seen;
  first.go();
  first.wait_for_cpu_ns();
  EXPECT_FALSE(collector.is_finished());
  second.go();
  second.wait_for_cpu_ns();
  collect_to_end(collector, seen);
  EXPECT_GE(*collector.exact_total(0), 39'000'000);
  EXPECT_EQ(seen.exited_tids.size(), 2U);
}

TEST(PerfCollector, SkipsAProcessOfTheListThatIsGone) {
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  Puppet puppet([] { burn(milliseconds(20)); });
  for (const bool has_children : {true, false}) {
    OPEN_OR_SKIP(collector, Target::processes({Pid{gone}, puppet.pid()}, has_children), options_at(499));
    EXPECT_THAT(collector.scope().processes, ::testing::ElementsAre(puppet.pid()));
  }
}

// More than any ring holds, and no reader until the end. The kernel tells of it with the next record of the
// same CPU.
TEST(PerfCollector, CountsWhatARingCouldNotHold) {
  Puppet puppet([] {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &here);
    ::sched_setaffinity(0, sizeof here, &here);
    burn(milliseconds(400));
  });
  PerfOptions options = options_at(4'999);
  options.stack_bytes = 65528;
  options.per_cpu = PerCpuUse::never;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  puppet.go();
  puppet.wait_for_cpu_ns();
  Seen seen;
  collect_to_end(collector, seen);
  EXPECT_GT(seen.lost, 100U);
  EXPECT_EQ(collector.counters().lost_records, seen.lost);
}

// Children that are forked while it attaches have its events, those of their parent, or both. None may count
// twice: also where the child itself only waits for its own.
TEST(PerfCollector, CountsNothingTwiceWhenProcessesAreForkedWhileItAttaches) {
  constexpr milliseconds kEach(20);
  Puppet puppet([&] {
    for (int living = 0; true;) {
      if (::fork() == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::fork() == 0) {
          ::prctl(PR_SET_PDEATHSIG, SIGKILL);
          burn(kEach);
          ::_exit(0);
        }
        ::wait(nullptr);
        ::_exit(0);
      }
      if (++living >= 8) ::wait(nullptr);
    }
  });
  puppet.go();
  PerfOptions options = options_at(999);
  options.stack_bytes = 1024;
  options.per_cpu = PerCpuUse::never;
  std::size_t tasks = 0, doubled = 0;
  for (int round = 0; round < 5; ++round) {
    OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
    Seen seen;
    collect_until(collector, seen, [&] { return seen.samples >= 300; });
    ASSERT_TRUE(collector.drain(std::ref(seen)).ok());
    EXPECT_EQ(collector.counters().malformed_records, 0U);
    for (const auto& [tid, sampled] : seen.sampled_by_tid) {
      ++tasks;
      doubled += 2 * sampled > 3 * std::chrono::nanoseconds(kEach).count() ? 1U : 0U;
    }
  }
  // Without a look at doubles it is one of ten. A crowded host may lengthen one by half.
  EXPECT_GT(tasks, 50U);
  EXPECT_LE(doubled * 20, tasks);
}

// Two threads that start others, and a child that does: what they inherit follows what they have.
void start_tasks_forever() {
  auto start_threads = [] {
    while (true) std::thread([] { burn(milliseconds(5)); }).join();
  };
  if (::fork() == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::thread(start_threads).detach();
  start_threads();
}

void check_pauses(PerCpuUse per_cpu) {
  Puppet puppet(start_tasks_forever);
  PerfOptions options = options_at(999);
  options.has_pauses = true;
  options.per_cpu = per_cpu;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  Seen seen;
  puppet.go();
  collect_until(collector, seen, [&] { return seen.samples >= 100; });
  EXPECT_FALSE(collector.paused_since());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(collector.pause(std::ref(seen)).ok());
    ASSERT_TRUE(collector.paused_since());
    const auto total = collector.exact_total(0);
    const std::size_t samples = seen.samples, forks = seen.forked_tids.size(),
                      exits = seen.exited_tids.size();
    collect_until(collector, seen, [&] {
      return seen.forked_tids.size() >= forks + 20 && seen.exited_tids.size() >= exits + 20;
    });
    EXPECT_GE(seen.forked_tids.size(), forks + 20);
    EXPECT_GE(seen.exited_tids.size(), exits + 20);
    EXPECT_EQ(seen.samples, samples);
    EXPECT_EQ(collector.exact_total(0), total);

    ASSERT_TRUE(collector.resume().ok());
    EXPECT_FALSE(collector.paused_since());
    collect_until(collector, seen, [&] { return seen.samples >= samples + 100; });
    EXPECT_GE(seen.samples, samples + 100);
    EXPECT_GT(*collector.exact_total(0), *total);
  }
  EXPECT_EQ(collector.mode(), per_cpu == PerCpuUse::always ? PerfMode::per_cpu : PerfMode::per_task);
}

TEST(PerfCollector, InAPauseNothingIsSampledOrCountedAndTasksAreFollowed) { check_pauses(PerCpuUse::never); }

TEST(PerfCollector, PausesTheEventsOfCpusToo) {
  if (!may_sample_cpus())
    GTEST_SKIP() << "sampling CPUs needs CAP_PERFMON or kernel.perf_event_paranoid <= 0";
  check_pauses(PerCpuUse::always);
}

TEST(PerfCollector, WithoutPausesItDoesNotPause) {
  Puppet puppet([] {});
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options_at(99));
  EXPECT_FALSE(collector.pause([](const CollectorEvent&) {}).ok());
  EXPECT_FALSE(collector.paused_since());
}

// A worker that had rings of its own: what it noted until it ended.
std::vector<EventNote> notes_of_a_worker_with_its_own_rings(PerfCollector& collector) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t worker = ::fork();
  if (worker == 0) {
    auto send = [&writer](std::span<const std::byte> note, int) {
      [[maybe_unused]] ssize_t sent = ::write(writer.get(), note.data(), note.size());
    };
    if (collector.take_over(-1, send).ok()) collector.deliver_at_once();
    ::_exit(0);
  }
  writer.reset();
  std::vector<EventNote> notes;
  EventNote note;
  while (::read(reader.get(), &note, sizeof note) == static_cast<ssize_t>(sizeof note)) notes.push_back(note);
  ::waitpid(worker, nullptr, 0);
  return notes;
}

TEST(PerfCollector, RingsThatDeliverAtOnceHaveRoomForALateReader) {
  if (!may_sample_cpus()) GTEST_SKIP() << "the memory that may be locked decides";
  Puppet puppet([] { burn(milliseconds(20'000)); });
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options_at(99));
  ASSERT_TRUE(collector.take_over(-1, {}).ok());
  const auto ring_kib = [&collector] {
    const std::string text = collector.describe();
    return std::stoul(text.substr(text.find("rings of ") + 9));
  };
  const unsigned long before = ring_kib();
  collector.deliver_at_once();
  EXPECT_EQ(ring_kib(), std::max(before / 2, 512UL));
  Seen seen;
  puppet.go();
  collect_until(collector, seen, [&] { return seen.samples > 0; });
}

TEST(PerfCollector, TakesEventsBackFromTheRingsOfAWorkerThatEnded) {
  Puppet puppet([] { burn(milliseconds(20'000)); });
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options_at(499));
  const std::vector<EventNote> notes = notes_of_a_worker_with_its_own_rings(collector);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].step, EventNote::Step::redirected);
  collector.follow(bytes_of(notes[0]), UniqueFd());
  collector.reclaim();
  ASSERT_TRUE(collector.take_over(-1, {}).ok());
  Seen seen;
  puppet.go();
  collect_until(collector, seen, [&] { return seen.samples > 0; });
  EXPECT_GT(seen.samples, 0U);
}

TEST(PerfCollector, SaysThatAProcessDoesNotExist) {
  pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  auto collector = PerfCollector::open(Target::process(Pid{gone}), options_at(99));
  ASSERT_FALSE(collector.ok());
  if (collector.error().code == ErrorCode::permission_denied) GTEST_SKIP() << collector.error().message;
  EXPECT_EQ(collector.error().code, ErrorCode::not_found);
}

TEST(PerfCollector, DropsForeignProcessesWhenItSamplesCpus) {
  if (!may_sample_cpus())
    GTEST_SKIP() << "sampling CPUs needs CAP_PERFMON or kernel.perf_event_paranoid <= 0";
  Puppet foreign([] { burn(milliseconds(60'000)); });
  foreign.go();
  Puppet puppet([] { burn(milliseconds(100)); });
  PerfOptions options = options_at(499);
  options.per_cpu = PerCpuUse::always;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  Seen seen;
  puppet.go();
  collect_to_end(collector, seen);
  EXPECT_EQ(collector.mode(), PerfMode::per_cpu);
  EXPECT_GE(*collector.exact_total(0), 99'000'000);
  EXPECT_THAT(seen.sampled_pids, ::testing::ElementsAre(to_int(puppet.pid())));
  EXPECT_GT(collector.counters().filtered_samples, 0U);
  EXPECT_EQ(seen.estimates, seen.samples);
}

TEST(PerfCollector, SamplesTheWholeHost) {
  if (!may_sample_cpus())
    GTEST_SKIP() << "sampling CPUs needs CAP_PERFMON or kernel.perf_event_paranoid <= 0";
  Puppet puppet([] { burn(milliseconds(60'000)); });
  puppet.go();
  OPEN_OR_SKIP(collector, Target::whole_host(), options_at(499));
  EXPECT_THAT(collector.describe(), ::testing::StartsWith("perf events per CPU"));
  Seen seen;
  collect_until(collector, seen, [&] { return seen.sampled_pids.contains(to_int(puppet.pid())); });
  EXPECT_TRUE(seen.sampled_pids.contains(to_int(puppet.pid())));
  EXPECT_FALSE(collector.is_finished());
  EXPECT_FALSE(collector.exact_total(0));
}

TEST(PerfCollector, SlowEventsHaveSmallRings) {
  Puppet puppet([] {});
  PerfOptions options = options_at(49);
  options.stack_bytes = 8192;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  EXPECT_THAT(collector.describe(), ::testing::StartsWith("perf events per task"));
  EXPECT_THAT(collector.describe(), ::testing::HasSubstr("rings of 512 KiB"));
}

// Events of tasks keep their period: samples are left out. Those of CPUs get another one in the kernel.
TEST(PerfCollector, SlowsDownEitherByLeavingOutOrInTheKernel) {
  for (const PerCpuUse use : {PerCpuUse::never, PerCpuUse::always}) {
    if (use == PerCpuUse::always && !may_sample_cpus()) continue;
    Puppet puppet([] { burn(milliseconds(400)); });
    PerfOptions options = options_at(999);
    options.per_cpu = use;
    OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
    Seen seen;
    collector.slow_down(4);
    puppet.go();
    collect_to_end(collector, seen);
    EXPECT_GT(seen.samples, 10U);
    EXPECT_LT(seen.samples, 250U);  // of 400
    if (use == PerCpuUse::always) {
      EXPECT_EQ(collector.counters().thinned_samples, 0U);
    } else {
      EXPECT_GT(collector.counters().thinned_samples, seen.samples);
    }
    EXPECT_GT(seen.sampled, 200'000'000);  // each stands for those that are not there
  }
}

// Tasks of two milliseconds, a fifth of a period: those that are forked once they matter have ticks, which
// add up to their time.
TEST(PerfCollector, SamplesShortTasksMoreOftenWithoutEventsOfCpus) {
  constexpr int kChildren = 1000;
  Puppet puppet([] {
    for (int i = 0; i < kChildren; ++i) {
      if (pid_t child = ::fork(); child == 0) {
        burn(milliseconds(2));
        ::_exit(0);
      } else {
        ::waitpid(child, nullptr, 0);
      }
    }
  });
  PerfOptions options = options_at(99);
  options.per_cpu = PerCpuUse::never;
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options);
  Seen seen;
  puppet.go();
  collect_to_end(collector, seen);
  EXPECT_EQ(collector.mode(), PerfMode::per_task);
  EXPECT_THAT(collector.describe(), ::testing::HasSubstr("short tasks"));
  EXPECT_EQ(collector.notices().size(), 0U) << collector.notices().front();
  EXPECT_GT(seen.ticks_by_tid.size(), 100U);
  // What each has counted adds up to what all have: nothing was exchanged between them.
  const std::int64_t total = *collector.exact_total(0);
  std::int64_t sum = 0;
  for (const auto& [tid, of_task] : seen.total_by_tid) sum += of_task;
  EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(total), 1.0, 0.02);
  // Ticks begin in the midst of the parent.
  std::int64_t time_of_ticked = 0, ticks = 0;
  for (const auto& [tid, of_task] : seen.ticks_by_tid) {
    if (tid == to_int(puppet.pid())) continue;
    time_of_ticked += seen.total_by_tid[tid];
    ticks += of_task;
  }
  EXPECT_NEAR(static_cast<double>(ticks) / static_cast<double>(time_of_ticked), 1.0, 0.1);
  EXPECT_NEAR(static_cast<double>(seen.sampled), static_cast<double>(seen.ticks),
              5 * std::sqrt(static_cast<double>(seen.samples)) * 1e9 / 99);
}

TEST(PerfCollector, ChangesToCpusUnderAForkStorm) {
  if (!may_sample_cpus())
    GTEST_SKIP() << "sampling CPUs needs CAP_PERFMON or kernel.perf_event_paranoid <= 0";
  constexpr int kChildren = 1000;
  Puppet puppet([] {
    for (int i = 0; i < kChildren; ++i) {
      if (pid_t child = ::fork(); child == 0) {
        burn(milliseconds(1));
        ::_exit(0);
      } else {
        ::waitpid(child, nullptr, 0);
      }
    }
  });
  OPEN_OR_SKIP(collector, Target::process(puppet.pid()), options_at(99));
  Seen seen;
  puppet.go();
  collect_to_end(collector, seen);
  EXPECT_EQ(collector.mode(), PerfMode::per_cpu) << collector.describe();
  EXPECT_GT(seen.sampled_pids.size(), 5U);
  // Nothing falls into the gap between the two modes, and nothing is counted by both.
  EXPECT_EQ(seen.forked_tids.size(), std::size_t{kChildren});
  EXPECT_EQ(seen.exited_tids.size(), std::size_t{kChildren} + 1);
  EXPECT_GE(*collector.exact_total(0), std::int64_t{kChildren} * 1'000'000);
  EXPECT_LT(*collector.exact_total(0), total_ceiling(puppet.wait_for_cpu_ns()));
  EXPECT_THAT(collector.describe(), ::testing::HasSubstr("short tasks"));
}

}  // namespace
}  // namespace ddprof
