#include "stack_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "unwind/unwinder_nest.hpp"
#include "unwind/unwinder_self_capture.hpp"

namespace ddprof {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(DDPROF_SOURCE_DIR) / "tests" / "golden" / "unwind";

std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kGolden, error))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenStack : public testing::TestWithParam<std::string> {};

TEST_P(GoldenStack, UnwindsAsRecorded) {
  const Result<StackCase> stack_case = read_stack_case(kGolden / GetParam());
  ASSERT_TRUE(stack_case.ok()) << stack_case.error().message;
  const StackCaseResult result = replay(*stack_case);
  EXPECT_THAT(result.frames, testing::ElementsAreArray(stack_case->frames));
  EXPECT_EQ(stop_reason_name(result.reason), stop_reason_name(stack_case->reason));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenStack, testing::ValuesIn(golden_cases()),
                         [](const auto& instance) { return instance.param; });

class StackCaseRecording : public testing::Test {
 protected:
  StackCaseRecording() {
    nest::run(3, [&] { capture(captured_); });
  }

  Result<StackCase> record(const StackCopy& copy) {
    return record_stack_case(
        {.registers = captured_.registers,
         .copy = copy,
         .modules = modules_.map,
         .rules = modules_.rules,
         .describe = [&](FileId file) { return std::pair(modules_.names[to_int(file)], BuildId()); }});
  }

  SelfModules modules_;
  SelfCapture captured_;
};

TEST_F(StackCaseRecording, KeepsOnlyWhatTheStackNeeds) {
  const Result<StackCase> recorded = record(captured_.copy());
  ASSERT_TRUE(recorded.ok()) << recorded.error().message;
  EXPECT_EQ(recorded->reason, StopReason::complete);
  EXPECT_GT(recorded->frames.size(), 20U);
  EXPECT_LE(recorded->stack.size(), captured_.stack.size());
  // A return address and a few saved registers a frame; all other words are gone.
  std::size_t words = 0;
  for (std::size_t i = 0; i + 8 <= recorded->stack.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, recorded->stack.data() + i, 8);
    if (word != 0) ++words;
  }
  EXPECT_LE(words, recorded->frames.size() * 3);
}

TEST_F(StackCaseRecording, SurvivesTheFolder) {
  const Result<StackCase> recorded = record(captured_.copy());
  ASSERT_TRUE(recorded.ok());
  const fs::path directory = fs::path(testing::TempDir()) / fmt::format("ddprof_stack_case_{}", getpid());
  ASSERT_TRUE(write_stack_case(directory, *recorded).ok());
  const Result<StackCase> back = read_stack_case(directory);
  fs::remove_all(directory);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(format_stack_case(*back), format_stack_case(*recorded));
  EXPECT_EQ(replay(*back), (StackCaseResult{recorded->frames, recorded->reason}));
}

TEST_F(StackCaseRecording, KeepsAddressesOfAnIncompleteStack) {
  StackCopy copy = captured_.copy();
  copy.bytes = copy.bytes.first(std::min<std::size_t>(copy.bytes.size(), 512));
  copy.is_truncated = true;
  const Result<StackCase> recorded = record(copy);
  ASSERT_TRUE(recorded.ok()) << recorded.error().message;
  EXPECT_EQ(recorded->reason, StopReason::truncated_copy);
  EXPECT_EQ(replay(*recorded), (StackCaseResult{recorded->frames, recorded->reason}));
}

TEST(StackCaseText, RoundTripsEveryKindOfRule) {
  StackCaseModule module;
  module.rows = {{0x10, 0x20, {DDPROF_CFA_SP, DDPROF_FP_AT_CFA, -16, 16}},
                 {0x20, 0x30, {DDPROF_CFA_DEREF_FP, DDPROF_FP_AT_FP, 0, 0xfff8}},
                 {0x30, 0x40, {DDPROF_CFA_REGISTER + 10, DDPROF_FP_SAME, 0, 8}},
                 {0x40, 0x50, {DDPROF_CFA_SP, DDPROF_RA_IN_REGISTER << 4, 5, 0}}};
  module.code = {{0x18, {std::byte{0xe8}, std::byte{0x01}}}};
  StackCaseModule back;
  ASSERT_TRUE(parse_stack_case_module(format_stack_case_module(module), back).ok());
  EXPECT_EQ(format_stack_case_module(back), format_stack_case_module(module));
  ASSERT_EQ(back.rows.size(), module.rows.size());
  for (std::size_t i = 0; i < back.rows.size(); ++i) {
    EXPECT_EQ(std::memcmp(&back.rows[i].rule, &module.rows[i].rule, sizeof(ddprof_unwind_rule)), 0) << i;
  }
}

TEST(StackCaseText, NamesTheLineThatItDoesNotUnderstand) {
  const Result<StackCase> parsed = parse_stack_case("# a case\narchitecture x86_64\nregister sp seven\n");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message, testing::HasSubstr("line 3"));
  EXPECT_THAT(parsed.error().message, testing::HasSubstr("register sp seven"));
}

TEST(StackCaseFiles, SayWhichFileIsMissing) {
  const Result<StackCase> missing = read_stack_case("/nonexistent");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("/nonexistent/case.txt"));
}

}  // namespace
}  // namespace ddprof
