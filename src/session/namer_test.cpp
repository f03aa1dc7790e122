#include "session/namer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <map>

namespace ddprof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(MomentTable, GivesEachSampleItsTimesInTheirOrder) {
  AggregatedProfile profile;
  profile.samples.resize(3);
  profile.moments = {{0, Nanoseconds(100)}, {2, Nanoseconds(150)}, {0, Nanoseconds(200)}};
  const MomentTable table(profile);
  EXPECT_THAT(table.times(0), ElementsAre(Nanoseconds(100), Nanoseconds(200)));
  EXPECT_THAT(table.times(1), IsEmpty());
  EXPECT_THAT(table.times(2), ElementsAre(Nanoseconds(150)));
}

TEST(MomentTable, IsEmptyWithoutATimeline) {
  AggregatedProfile profile;
  profile.samples.resize(1);
  EXPECT_THAT(MomentTable(profile).times(0), IsEmpty());
}

const ThreadKey kNamedThread{Pid{1 << 23}, Tid{1 << 23}};

// A period of samples in a small program, or in this one, which has symbols and many lines, and in other
// code.
class NamerTest : public testing::Test {
 protected:
  NamerTest() {
    use_program("/bin/true");
    period_.times = {.sequence = 3,
                     .start = Nanoseconds(1000),
                     .end = Nanoseconds(5000),
                     .unix_start = Nanoseconds(70'000)};
    options_.patience = std::chrono::minutes(1);
  }

  void use_program(const std::string& path) {
    program_ = files_.find_or_open(Pid{::getpid()}, {}, {}, {.path = path});
  }
  void use_this_program() { use_program(std::filesystem::read_symlink("/proc/self/exe")); }

  void add(std::vector<Frame> frames, std::int64_t count = 1, const SampleContext* context = nullptr) {
    const auto sample = aggregator_.add(kNamedThread, frames, {{0, count}, {1, count * 100}}, context);
    if (!has_timeline_) return;
    for (std::int64_t at = 0; at < times_per_sample_; ++at)
      aggregator_.add_moment(sample, Nanoseconds(2000 + at));
  }
  Frame in_program(std::uint64_t address) const { return {.file = program_, .address = address}; }

  const ClosedPeriod& closed() {
    ClosedPart part;
    part.kind = "cpu";
    part.profile = aggregator_.take(period_.times.start, period_.times.end);
    part.visible_columns = 2;
    part.labels.assign(part.profile.threads.size(), names_);
    part.processes.assign(part.profile.threads.size(), 0);
    part.period_type = part.default_column = "cpu";
    part.period_unit = "nanoseconds";
    period_.parts.push_back(std::move(part));
    period_.files = files_.files();
    return period_;
  }
  const Profile& named() {
    batch_ = Namer(options_).name(closed());
    return batch_.parts.back().profile;
  }

  static std::multimap<std::string, std::string> labels_of(const Profile& profile) {
    std::multimap<std::string, std::string> labels;
    for (const ProfileLabel& label : profile.samples.front().labels)
      labels.emplace(profile.text(label.key),
                     label.text != 0 ? std::string(profile.text(label.text)) : std::to_string(label.number));
    return labels;
  }

  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  FileId program_{};
  NamerOptions options_;
  TaskNames names_{.process = "shop", .thread = "worker"};
  bool has_timeline_ = false;
  std::int64_t times_per_sample_ = 1;
  Aggregator aggregator_{{{"samples", "count"}, {"cpu", "nanoseconds"}}};
  ClosedPeriod period_;
  Batch batch_;
};

TEST_F(NamerTest, AsksForTheHottestAddressesFirst) {
  use_this_program();
  const FileId other = files_.find_or_add_jit(Pid{::getpid()});
  add({in_program(0x10)}, 5);
  add({in_program(0x20), in_program(0x30)}, 7);
  add({in_program(0x30)}, 1);
  add({{.file = other, .address = 0x50}, {.kind = FrameKind::kernel, .file = program_, .address = 0x60}}, 99);
  const auto wanted = wanted_sources(closed());
  ASSERT_EQ(wanted.size(), 1U) << "generated code and the kernel have no debug information";
  EXPECT_EQ(wanted[0].id, program_);
  EXPECT_THAT(wanted[0].addresses, ElementsAre(0x30, 0x20, 0x10));
  EXPECT_EQ(wanted[0].weight, 5 + 7 + 8);
}

TEST_F(NamerTest, AsksForAllAddressesWhereNoneIsHotter) {
  use_this_program();
  for (std::uint64_t address = 1; address <= 100; ++address) add({in_program(address)});
  EXPECT_EQ(wanted_sources(closed()).at(0).addresses.size(), 100U);
}

// Debug information is read once for an address, however many parts have it.
TEST_F(NamerTest, AsksOnceForWhatSeveralPartsHave) {
  use_this_program();
  add({in_program(0x10), in_program(0x20)}, 5);
  closed();
  add({in_program(0x20)}, 7);
  const auto wanted = wanted_sources(closed());
  ASSERT_EQ(wanted.size(), 1U);
  EXPECT_THAT(wanted[0].addresses, testing::UnorderedElementsAre(0x10, 0x20));
  EXPECT_EQ(wanted[0].weight, 5 + 5 + 7);
}

TEST_F(NamerTest, TheProfileSaysWhenItWas) {
  has_timeline_ = true;
  add({in_program(0x10)});
  period_.comments = {"hello"};
  period_.is_last = true;
  const Profile& profile = named();
  EXPECT_EQ(batch_.sequence, 3U);
  EXPECT_TRUE(batch_.is_last);
  EXPECT_EQ(batch_.start, Nanoseconds(70'000));
  EXPECT_EQ(batch_.end, Nanoseconds(74'000));
  EXPECT_EQ(profile.time_ns, 70'000);
  EXPECT_EQ(profile.duration_ns, 4000);
  EXPECT_EQ(profile.text(profile.comments.front()), "hello");
  EXPECT_THAT(profile.samples.front().times, ElementsAre(71'000));
  EXPECT_EQ(profile.samples.front().events, 1U);
}

// Slowed-down sampling has fewer moments than samples; a count of zero still is as many as there are times.
TEST_F(NamerTest, ASampleIsAsManyEventsAsWereCountedAndAtLeastItsTimes) {
  has_timeline_ = true;
  times_per_sample_ = 2;
  add({in_program(0x10)}, 5);
  add({in_program(0x20)}, 0);
  const Profile& profile = named();
  EXPECT_EQ(profile.samples[0].events, 5U);
  EXPECT_EQ(profile.samples[1].events, 2U);
}

TEST_F(NamerTest, WithoutATimelineSamplesHaveNoTimes) {
  add({in_program(0x10)});
  const Profile& profile = named();
  EXPECT_THAT(profile.samples.front().times, IsEmpty());
}

TEST_F(NamerTest, LabelsSayWhoseASampleIs) {
  add({in_program(0x10)});
  const std::string id = std::to_string(1 << 23);
  EXPECT_THAT(labels_of(named()), UnorderedElementsAre(Pair("thread id", id), Pair("thread name", "worker"),
                                                       Pair("pid", id), Pair("process name", "shop")));
}

TEST_F(NamerTest, LabelsSayInWhatContainerASampleIs) {
  names_.namespace_pid = Pid{7};
  names_.service = "bank";
  names_.confinement = std::make_shared<Confinement>(Confinement{.container_id = "c0ffee", .cgroup = "/pod"});
  add({in_program(0x10)});
  const auto labels = labels_of(named());
  EXPECT_THAT(labels, Contains(Pair(std::string(kNamespacePidLabel), "7")));
  EXPECT_THAT(labels, Contains(Pair(std::string(kServiceLabel), "bank")));
  EXPECT_THAT(labels, Contains(Pair(std::string(kContainerIdLabel), "c0ffee")));
  EXPECT_THAT(labels, Contains(Pair(std::string(kCgroupLabel), "/pod")));
}

TEST_F(NamerTest, LabelsSayWhatTheThreadWasDoing) {
  SampleContext context{
      .span_id = 5, .local_root_span_id = 6, .endpoint = "/buy", .others = {{"tier", "gold"}}};
  context.trace_id.back() = 0xab;
  add({in_program(0x10)}, 1, &context);
  context.span_id = 8;
  add({in_program(0x10)}, 1, &context);
  const Profile& profile = named();
  const auto labels = labels_of(profile);
  EXPECT_THAT(labels, Contains(Pair(std::string(kSpanIdLabel), "5")));
  EXPECT_THAT(labels, Contains(Pair(std::string(kLocalRootSpanIdLabel), "6")));
  EXPECT_THAT(labels, Contains(Pair(std::string(kTraceEndpointLabel), "/buy")));
  EXPECT_THAT(labels, Contains(Pair(std::string(kTraceIdLabel), std::string(30, '0') + "ab")));
  EXPECT_THAT(labels, Contains(Pair("tier", "gold")));
  EXPECT_EQ(profile.context_keys.size(), 1U) << "a key that both have is one";
}

TEST_F(NamerTest, AContextWithoutATraceHasNoLabelsOfIt) {
  const SampleContext context{.others = {{"tier", "gold"}}};
  add({in_program(0x10)}, 1, &context);
  const auto labels = labels_of(named());
  EXPECT_EQ(labels.count(std::string(kSpanIdLabel)), 0U);
  EXPECT_EQ(labels.count(std::string(kTraceIdLabel)), 0U);
  EXPECT_EQ(labels.count(std::string(kTraceEndpointLabel)), 0U);
}

TEST_F(NamerTest, SaysWhereTheNamesOfEachModuleCameFrom) {
  use_this_program();
  const auto main = files_.file(program_)->elf->entry();
  add({in_program(main)});
  Namer namer(options_);
  const Batch batch = namer.name(closed());
  ASSERT_EQ(namer.modules().size(), 1U);
  EXPECT_EQ(namer.modules()[0].path, files_.file(program_)->path);
  EXPECT_NE(namer.modules()[0].level, ModuleNaming::Level::none);
  EXPECT_THAT(namer.modules()[0].source, Not(IsEmpty()));
  EXPECT_EQ(batch.parts[0].profile.text(batch.parts[0].profile.comments.back()),
            "names: " + describe(namer.modules()[0]));
}

TEST_F(NamerTest, SaysWhyAModuleHasNoNames) {
  const FileId gone = files_.find_or_open(Pid{1 << 23}, {}, {}, {.path = "/no/such/file"});
  add({{.file = gone, .address = 0x10}, {.kind = FrameKind::kernel, .address = 1}});
  Namer namer(options_);
  const Batch batch = namer.name(closed());
  ASSERT_EQ(namer.modules().size(), 1U) << "the kernel is none";
  EXPECT_EQ(namer.modules()[0].level, ModuleNaming::Level::none);
  EXPECT_EQ(namer.modules()[0].problem, files_.file(gone)->problem);
  const Profile& profile = batch.parts[0].profile;
  const ProfileLocation& leaf = profile.locations[profile.samples[0].locations[0]];
  EXPECT_EQ(profile.text(profile.functions[leaf.lines[0].function].name), "file+0x10");
}

TEST_F(NamerTest, GeneratedCodeWithoutNamesHasOneHint) {
  const FileId first = files_.find_or_add_jit(Pid{1 << 23});
  const FileId second = files_.find_or_add_jit(Pid{(1 << 23) + 1});
  period_.mappings = {{.start = {0x7000}, .end = {0x8000}, .file_offset = 0x7000, .file = first}};
  for (const std::uint64_t address : {0x7010, 0x7020}) add({{.file = first, .address = address}});
  add({{.file = second, .address = 0x7010}});
  Namer namer(options_);
  const Batch batch = namer.name(closed());
  ASSERT_EQ(namer.modules().size(), 2U);
  EXPECT_THAT(namer.hints(), ElementsAre(testing::HasSubstr("/tmp/perf-PID.map")));
  const Profile& profile = batch.parts[0].profile;
  ASSERT_EQ(profile.locations.size(), 3U) << "addresses stay";
  const auto name = [&](std::size_t location) {
    return profile.text(profile.functions[profile.locations[location].lines[0].function].name);
  };
  EXPECT_EQ(name(0), "[anonymous code]+0x7000");
  EXPECT_EQ(profile.locations[0].lines[0].function, profile.locations[1].lines[0].function);
  EXPECT_EQ(name(2), "[anonymous code]+0x7010") << "no mapping of that process is known";
}

TEST(ModuleNaming, IsDescribedWithWhatIsMissing) {
  EXPECT_EQ(describe({.path = "/a"}), "/a: no names");
  EXPECT_EQ(describe({.path = "/a", .source = "symbol table", .problem = "damaged", .unread = 1}),
            "/a: symbol table; 1 addresses without lines, which came too late; damaged");
}

__attribute__((always_inline)) inline int inlined(volatile int* value) { return *value * 3; }
__attribute__((noinline)) int outermost(volatile int* value) { return inlined(value) + 1; }

TEST_F(NamerTest, InlinedCallsAreToldUnlessTheyAreNotWanted) {
  use_this_program();
  volatile int number = 2;
  ASSERT_EQ(outermost(&number), 7);
  const std::uint64_t bias = ::getauxval(AT_ENTRY) - files_.file(program_)->elf->entry();
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(&outermost) - bias;
  const auto most_calls = [&](bool has_inlined_calls) {
    options_.has_inlined_calls = has_inlined_calls;
    for (std::uint64_t offset = 0; offset < 256; ++offset) add({in_program(begin + offset)});
    const Profile& profile = named();
    std::size_t most = 0;
    for (const ProfileLocation& location : profile.locations) {
      const ProfileFunction& last = profile.functions[location.lines.back().function];
      if (profile.text(last.name).find("outermost") == std::string_view::npos) continue;
      EXPECT_TRUE(profile.text(last.file).ends_with("namer_test.cpp"));
      most = std::max(most, location.lines.size());
    }
    return most;
  };
  EXPECT_EQ(most_calls(true), 2U);
  EXPECT_EQ(most_calls(false), 1U);
}

}  // namespace
}  // namespace ddprof
