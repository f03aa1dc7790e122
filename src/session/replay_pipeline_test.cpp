// The whole pipeline without a kernel: what was recorded goes in, the bytes of a profile come out, the same
// every time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "collect/merged_collector.hpp"
#include "collect/replay/replay_engine.hpp"
#include "encode/pprof.hpp"
#include "session/fake_clock_fixture.hpp"
#include "session/session.hpp"

namespace ddprof {
namespace {

constexpr std::int64_t kTick = 10'101'010;
constexpr Pid kProgram{1 << 23};  // above any pid_max: there is nothing but what was recorded
constexpr Tid kThread{1 << 23};

// The pprof bytes of each profile.
class EncodedProfiles final : public Destination {
 public:
  Result<Delivery> send(const Batch& batch) override {
    const Profile& profile = batch.parts.front().profile;
    names.clear();
    for (const ProfileFunction& function : profile.functions) names.emplace_back(profile.text(function.name));
    bytes += encode_pprof(profile);
    return Delivery::arrived;
  }
  [[nodiscard]] std::string describe() const override { return "bytes"; }

  std::string bytes;
  std::vector<std::string> names;
};

extern "C" __attribute__((noinline, used, visibility("default"))) int replayed_leaf(int x) { return x + 1; }
extern "C" __attribute__((noinline, used, visibility("default"))) int replayed_root(int x) {
  return replayed_leaf(x) * 2;
}

std::uint64_t inside(int (*function)(int)) { return reinterpret_cast<std::uint64_t>(function) + 1; }

// The executable mapping of this very program, as a record would tell it.
MapEvent own_code(std::string& path) {
  std::ifstream maps("/proc/self/maps");
  MapEvent event;
  const std::uint64_t code = inside(replayed_leaf);
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t start = 0, end = 0, offset = 0;
    char dash = 0;
    std::string rights;
    std::istringstream fields(line);
    fields >> std::hex >> start >> dash >> end >> rights >> offset;
    if (code < start || code >= end) continue;
    event = {.pid = kProgram, .start = {start}, .length = end - start, .file_offset = offset};
  }
  path = std::filesystem::read_symlink("/proc/self/exe");
  struct stat facts {};
  EXPECT_EQ(::stat(path.c_str(), &facts), 0);
  event.device_major = major(facts.st_dev);
  event.device_minor = minor(facts.st_dev);
  event.inode = facts.st_ino;
  event.path = path;
  return event;
}

SampleEvent sample_at(std::int64_t time) {
  SampleEvent sample;
  sample.pid = kProgram;
  sample.tid = kThread;
  sample.time = Nanoseconds(time);
  sample.value = kTick;
  return sample;
}

// One kind of stack in each: frames that are ready, and registers with a stack.
std::string recording_of_chains() {
  std::string path;
  EventFileWriter writer;
  writer.write(CommEvent{.pid = kProgram, .tid = kThread, .is_exec = true, .comm = "program"});
  writer.write(own_code(path));
  const std::array<std::uint64_t, 2> chain = {inside(replayed_leaf), inside(replayed_root) + 1};
  for (std::int64_t i = 0; i < 50; ++i) {
    SampleEvent sample = sample_at(10 + 2 * i);
    sample.user_chain = chain;
    writer.write(sample);
    if (i % 10 == 9) writer.write(RecordedBatchEnd());
  }
  writer.write(RecordedTotal{0, 110 * kTick});
  writer.write(ExitEvent{.pid = kProgram, .tid = kThread, .time = Nanoseconds(1000)});
  return writer.bytes();
}

std::string recording_of_registers() {
  EventFileWriter writer;
  std::array<std::byte, 64> stack{};
  for (std::int64_t i = 0; i < 50; ++i) {
    SampleEvent sample = sample_at(11 + 2 * i);
    sample.has_registers = true;
    sample.registers.pc = inside(replayed_root);
    sample.registers.sp = 0x7ffc00000000;
    sample.stack = stack;
    sample.stack_requested = 8192;
    writer.write(sample);
    if (i % 10 == 9) writer.write(RecordedBatchEnd());
  }
  return writer.bytes();
}

EncodedProfiles play() {
  std::vector<std::unique_ptr<Collector>> both;
  both.push_back(std::move(ReplayCollector::open(recording_of_chains(), 1)).value());
  both.push_back(std::move(ReplayCollector::open(recording_of_registers(), 1)).value());
  MergedCollector collector(std::move(both));
  EncodedProfiles destination;
  SessionOptions options;
  options.events = {default_cpu_event()};
  options.target = Target::command(kProgram);
  // Time is what was recorded, and the profiler costs nothing.
  FakeClock clock;
  options.clock = &clock;
  options.observer.on_sample = [&](const SampleEvent& sample, const BuiltStack&, const ProcessTable&,
                                   const FileRegistry&) {
    clock.time = std::chrono::seconds(1) + sample.time;
  };
  options.own_usage = [] { return OwnUsage{}; };
  // A recording waits for files and names, however busy the machine is.
  options.most_waiting = options.naming.patience = std::chrono::minutes(10);
  const std::atomic<bool> stop{false};
  const Summary summary = Session(collector, destination, options).run(stop);
  EXPECT_EQ(summary.stacks, 100U);
  return destination;
}

TEST(ReplayPipeline, ProfilesOfTwoRunsAreTheSameToTheByte) {
  const EncodedProfiles first = play();
  const EncodedProfiles second = play();
  ASSERT_FALSE(first.bytes.empty());
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_THAT(first.names, testing::IsSupersetOf({"replayed_leaf", "replayed_root"}));
}

}  // namespace
}  // namespace ddprof
