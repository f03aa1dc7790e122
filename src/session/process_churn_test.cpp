// A host for days: processes come and go, and what is kept of them must not grow with their number.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "base/sanitizer.hpp"
#include "session/session.hpp"

extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace ddprof {
namespace {

std::size_t heap_in_use() {
  if (&__sanitizer_get_current_allocated_bytes != nullptr) return __sanitizer_get_current_allocated_bytes();
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Counts profiles, so that the collector can wait for them: nothing is on its way when memory is measured.
class CountedProfiles final : public Destination {
 public:
  Result<Delivery> send(const Batch& batch) override {
    const std::lock_guard lock(mutex_);
    sent_++;
    samples_ += batch.parts.front().profile.samples.size();
    changed_.notify_all();
    return Delivery::arrived;
  }
  [[nodiscard]] std::string describe() const override { return "counted"; }

  void wait_for(std::size_t profiles) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return sent_ >= profiles; });
  }
  [[nodiscard]] std::size_t samples() const { return samples_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t sent_ = 0;
  std::size_t samples_ = 0;
};

// Short processes, so many in each batch: forked from a shell, a program of their own or a common one, a
// library that all have, generated code, a sample, the end. Now and then a record is missing.
class ChurningHost final : public Collector {
 public:
  ChurningHost(CountedProfiles& profiles, std::size_t batches) : profiles_(profiles), batches_(batches) {}

  // Sanitizers are slow, and tell what is lost besides.
  static constexpr std::int32_t kProcessesPerBatch = kHasSanitizer ? 50 : 1000;

  Result<void> collect(std::chrono::milliseconds, const EventHandler& handle) override {
    profiles_.wait_for(heap_.size());
    heap_.push_back(settled_heap());
    handle(CommEvent{kShell, Tid{to_int(kShell)}, {}, false, "sh"});
    for (std::int32_t number = 0; number < kProcessesPerBatch; ++number) run_process(handle);
    if (heap_.size() % 10 == 0) handle(LostEvent{kShellThread, 3});
    return {};
  }
  Result<void> drain(const EventHandler&) override { return {}; }
  std::optional<std::int64_t> exact_total(std::uint32_t) override { return std::nullopt; }
  bool is_finished() override { return heap_.size() >= batches_; }
  [[nodiscard]] CollectorCounters counters() const override { return {}; }
  [[nodiscard]] std::string describe() const override { return "churn"; }
  [[nodiscard]] std::vector<std::string> notices() const override { return {}; }

  [[nodiscard]] const std::vector<std::size_t>& heap() const { return heap_; }

 private:
  // All above any pid_max, for which /proc has nothing. Like real ones they are used again.
  static constexpr std::int32_t kFirstPid = 1 << 23;
  static constexpr std::int32_t kPids = 30'000;
  static constexpr Pid kShell{kFirstPid - 1};
  static constexpr Tid kShellThread{kFirstPid - 1};

  // Whoever has counted a profile is about to let go of it.
  static std::size_t settled_heap() {
    std::size_t least = heap_in_use();
    for (int look = 0; look < 100; ++look) {
      std::this_thread::yield();
      least = std::min(least, heap_in_use());
    }
    return least;
  }

  void run_process(const EventHandler& handle) {
    const std::uint64_t number = processes_++;
    const auto id = static_cast<std::int32_t>(kFirstPid + number % kPids);
    const Pid pid{id};
    const Tid tid{id};
    const std::string name = "job" + std::to_string(number);
    handle(ForkEvent{pid, kShell, tid, kShellThread, {}});
    handle(CommEvent{pid, tid, {}, true, name});
    const bool is_new_file = number % 16 == 0;
    const std::string path = is_new_file ? "/build/" + name : "/bin/job";
    const std::uint64_t inode = is_new_file ? 1'000'000 + number : 7;
    map(handle, pid, 0x10000, path, inode);
    map(handle, pid, 0x20000, "/lib/libc.so.6", 8);
    if (number % 3 == 0) map(handle, pid, 0x40000 + 0x1000 * (number % 1000), "//anon", 0);
    if (number % 20 == 0) map(handle, pid, 0x30000, "/tmp/jit-" + std::to_string(id) + ".dump", number);
    handle(sample(pid, tid, number % 3 == 0 ? 0x40000 + 0x1000 * (number % 1000) : 0x10000));
    if (number % 50 != 0) handle(ExitEvent{pid, tid, {}});
    if (number % 7 == 0) handle(sample(pid, tid, 0x10000));  // after its end
  }

  static void map(const EventHandler& handle, Pid pid, std::uint64_t start, const std::string& path,
                  std::uint64_t inode) {
    MapEvent event;
    event.pid = pid;
    event.start = {start};
    event.length = 0x1000;
    event.file_offset = start;
    event.inode = inode;
    event.path = path;
    handle(event);
  }

  static SampleEvent sample(Pid pid, Tid tid, std::uint64_t pc) {
    SampleEvent event;
    event.pid = pid;
    event.tid = tid;
    event.value = 10'000'000;
    event.basis = SampleBasis::cpu_period;  // as all samples of a whole host
    event.has_registers = true;
    event.registers.pc = pc;
    event.stack_requested = 8192;
    return event;
  }

  CountedProfiles& profiles_;
  std::size_t batches_;
  std::uint64_t processes_ = 0;
  std::vector<std::size_t> heap_;  // at the start of each batch
};

TEST(ProcessChurn, ProcessesThatAreGoneLeaveNothingBehind) {
  constexpr std::size_t kBatches = 100;
  CountedProfiles profiles;
  ChurningHost host(profiles, kBatches);
  SessionOptions options;
  options.events = {default_cpu_event()};
  options.periods.length = std::chrono::seconds(0);  // a profile for every batch
  options.target.max_processes = 100;
  const std::atomic<bool> stop{false};
  Session(host, profiles, options).run(stop);

  EXPECT_GE(profiles.samples(), kBatches * ChurningHost::kProcessesPerBatch);
  // The first batches fill caches that have a limit. The least of twenty is when nothing else was going on.
  const auto least_from = [&](std::size_t batch) {
    const auto first = host.heap().begin() + static_cast<std::ptrdiff_t>(batch);
    return *std::min_element(first, first + 20);
  };
  const std::size_t early = least_from(20);
  const std::size_t late = least_from(kBatches - 20);
  constexpr std::size_t kTolerance = kHasSanitizer ? 5 : 20;  // a part of it: the fewer, the noisier
  EXPECT_LT(late, early + early / kTolerance) << "the heap has grown from " << early << " to " << late;
}

}  // namespace
}  // namespace ddprof
