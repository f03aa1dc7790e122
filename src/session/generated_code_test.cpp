#include "session/generated_code.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Pid kJavaPid{4711};

GeneratedCodeUse java(std::int64_t through, std::int64_t cut, bool has_names) {
  return {.pid = kJavaPid,
          .process = "java",
          .runtime = JitRuntime::java,
          .has_names = has_names,
          .samples = 1000,
          .through = through,
          .cut = cut};
}

TEST(JitRuntime, IsKnownByTheFilesThatAProcessMaps) {
  EXPECT_EQ(runtime_of_file("libjvm.so"), JitRuntime::java);
  EXPECT_EQ(runtime_of_file("node"), JitRuntime::node);
  EXPECT_EQ(runtime_of_file("libnode.so.108"), JitRuntime::node);
  EXPECT_EQ(runtime_of_file("libffi.so.8"), JitRuntime::unknown);
}

TEST(GeneratedCodeHints, JavaWithCutStacksNeedsFramePointers) {
  const std::vector<GeneratedCodeUse> uses = {java(950, 940, true)};
  EXPECT_THAT(generated_code_hints(uses),
              ElementsAre(AllOf(HasSubstr("4711 (java)"), HasSubstr("94 %"),
                                HasSubstr("-XX:+PreserveFramePointer"), Not(HasSubstr("jcmd")))));
}

TEST(GeneratedCodeHints, JavaWithoutNamesNeedsAPerfMap) {
  const std::vector<GeneratedCodeUse> uses = {java(950, 0, false)};
  EXPECT_THAT(generated_code_hints(uses), ElementsAre(AllOf(HasSubstr("jcmd 4711 Compiler.perfmap"),
                                                            Not(HasSubstr("PreserveFramePointer")))));
}

TEST(GeneratedCodeHints, NothingIsSaidWhereNothingIsMissing) {
  EXPECT_THAT(generated_code_hints(std::vector{java(950, 0, true)}), IsEmpty());
  EXPECT_THAT(generated_code_hints(std::vector{java(0, 0, true)}), IsEmpty());
}

// libffi makes a few bytes of code, which now and then a sample is in.
TEST(GeneratedCodeHints, NothingIsSaidOfLessThanAPercent) {
  GeneratedCodeUse use = java(9, 9, false);
  EXPECT_THAT(generated_code_hints(std::vector{use}), IsEmpty());
  use.through = use.cut = 10;
  EXPECT_EQ(generated_code_hints(std::vector{use}).size(), 2U);
}

TEST(GeneratedCodeHints, ManyProcessesShareAHint) {
  std::vector<GeneratedCodeUse> uses(5, java(500, 500, true));
  uses.push_back({.pid = Pid{8},
                  .process = "node",
                  .runtime = JitRuntime::node,
                  .has_names = false,
                  .samples = 10,
                  .through = 9});
  EXPECT_THAT(generated_code_hints(uses),
              ElementsAre(AllOf(HasSubstr("and 2 more"), HasSubstr("50 %")),
                          AllOf(HasSubstr("8 (node)"), HasSubstr("--perf-basic-prof"))));
}

// A process with generated code, as the sampling thread leaves it.
class GeneratedCodeOfAPeriod : public testing::Test {
 protected:
  void add(const std::vector<Frame>& frames, std::int64_t count, Pid pid = kJavaPid) {
    aggregator_.add({pid, Tid{to_int(pid)}}, frames, {{0, count}});
  }
  std::vector<GeneratedCodeUse> uses() {
    ClosedPart part;
    part.profile = aggregator_.take({}, {});
    part.labels.assign(part.profile.threads.size(), {.process = "java"});
    period_.parts.push_back(std::move(part));
    period_.files = files_.files();
    return generated_code_in(period_);
  }

  ProcFileProvider provider_;
  FileRegistry files_{provider_};
  Aggregator aggregator_{{{"samples", "count"}}};
  ClosedPeriod period_;
};

TEST_F(GeneratedCodeOfAPeriod, IsCountedByProcess) {
  const FileId code = files_.find_or_add_jit(kJavaPid);
  period_.runtimes[code] = JitRuntime::java;
  const Frame in_code{.file = code, .address = 0x10};
  add({in_code, {.kind = FrameKind::stopped, .reason = StopReason::no_unwind_info, .file = code}}, 94);
  add({in_code, {.address = 0x20}}, 3);
  add({{.address = 0x20}}, 3);
  add({{.address = 0x20}}, 50, Pid{12});
  const auto counted = uses();
  ASSERT_EQ(counted.size(), 1U);
  EXPECT_EQ(counted[0].pid, kJavaPid);
  EXPECT_EQ(counted[0].process, "java");
  EXPECT_EQ(counted[0].runtime, JitRuntime::java);
  EXPECT_EQ(counted[0].samples, 100);
  EXPECT_EQ(counted[0].through, 97);
  EXPECT_EQ(counted[0].cut, 94);
}

TEST_F(GeneratedCodeOfAPeriod, IsNoneWithoutAny) {
  add({{.address = 0x20}}, 3);
  EXPECT_THAT(uses(), IsEmpty());
}

}  // namespace
}  // namespace ddprof
