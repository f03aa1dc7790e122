#include "session/table_compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <latch>
#include <memory>
#include <thread>
#include <tuple>

#include "base/clock.hpp"
#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"
#include "unwind/compile.hpp"

namespace ddprof {
namespace {

std::shared_ptr<const CodeFile> program(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  CodeFile file{.kind = CodeFile::Kind::elf, .path = path};
  file.image = MappedRegion::map_file(fd.get()).value_or({});
  file.elf = ElfFile::parse(file.image.bytes()).value();
  return std::make_shared<const CodeFile>(std::move(file));
}

constexpr FileId kFile{1};
constexpr std::uint32_t kUser = 1, kOtherUser = 2;
const FileThreads::Limits kWaits{.most_waiting = std::chrono::minutes(1)};
const FileThreads::Limits kNeverWaits{.most_waiting = Nanoseconds(0)};

class TableCompilerTest : public testing::Test {
 protected:
  std::shared_ptr<const CodeFile> file_ = program("/proc/self/exe");
  RuleDictionary rules_;
};

TEST_F(TableCompilerTest, ATableOfAnotherThreadIsThatOfThisOne) {
  RuleDictionary own_rules;
  own_rules.intern({1, 2, 3, 4});  // other numbers than those of the thread
  const UnwindTable expected = compile_unwind_table(*file_->elf, own_rules, {});
  rules_.intern({4, 3, 2, 1});
  FileThreads threads(kWaits);
  TableCompiler compiler(threads, {});
  const auto compiled = compiler.compile(kFile, file_, kUser, rules_);
  ASSERT_TRUE(compiled && compiled->ok());
  const UnwindTable& table = compiled->value().table;
  ASSERT_EQ(table.row_count(), expected.row_count());
  ASSERT_GT(table.row_count(), 1000U);
  ASSERT_EQ(table.rows().size(), expected.rows().size());
  for (std::size_t row = 0; row < table.rows().size(); ++row) {
    const ddprof_unwind_rule& rule = rules_[RuleIndex{table.rows()[row].rule}];
    const ddprof_unwind_rule& other = own_rules[RuleIndex{expected.rows()[row].rule}];
    ASSERT_EQ(std::memcmp(&rule, &other, sizeof rule), 0) << row;
  }
}

TEST_F(TableCompilerTest, WhatTakesTooLongIsThereLater) {
  FileThreads threads(kNeverWaits);
  TableCompiler compiler(threads, {});
  EXPECT_FALSE(compiler.compile(kFile, file_, kUser, rules_));
  while (threads.finished() == 0) std::this_thread::yield();
  const auto compiled = compiler.compile(kFile, file_, kUser, rules_);
  ASSERT_TRUE(compiled && compiled->ok());
  EXPECT_GT(compiled->value().table.row_count(), 1000U);
  EXPECT_EQ(threads.finished(), 1U);
}

TEST_F(TableCompilerTest, EndsWithWorkInItsQueue) {
  FileThreads threads(kNeverWaits);
  TableCompiler compiler(threads, {});
  for (std::uint32_t id = 1; id < 4; ++id) EXPECT_FALSE(compiler.compile(FileId{id}, file_, kUser, rules_));
}

// What depends on when threads run is tried again: without the rule it would never be so.
template <typename Try>
bool succeeds_once(Try attempt) {
  for (int left = 20; left > 0; --left) {
    if (attempt()) return true;
  }
  return false;
}

TEST_F(TableCompilerTest, AnotherUsersFileComesBeforeTheSecondOfOne) {
  EXPECT_TRUE(succeeds_once([&] {
    FileThreads threads(kNeverWaits);
    TableCompiler compiler(threads, {});
    std::ignore = compiler.compile(FileId{1}, file_, kUser, rules_);  // which its thread begins with
    std::ignore = compiler.compile(FileId{2}, file_, kUser, rules_);
    std::ignore = compiler.compile(FileId{3}, file_, kOtherUser, rules_);
    while (threads.finished() < 2) std::this_thread::yield();
    return compiler.compile(FileId{3}, file_, kOtherUser, rules_).has_value();
  }));
}

// A job of kUser that hangs, until its end.
class HangingJob {
 public:
  explicit HangingJob(FileThreads& threads) {
    EXPECT_TRUE(threads.post(kUser, [begun = begun_, may_end = may_end_] {
      begun->count_down();
      may_end->wait();
    }));
    begun_->wait();
  }
  ~HangingJob() { may_end_->count_down(); }
  HangingJob(const HangingJob&) = delete;
  HangingJob& operator=(const HangingJob&) = delete;

 private:
  std::shared_ptr<std::latch> begun_ = std::make_shared<std::latch>(1);
  std::shared_ptr<std::latch> may_end_ = std::make_shared<std::latch>(1);
};

TEST_F(TableCompilerTest, AFileThatTwoUsersMapWaitsForTheJobsOfNeither) {
  FileThreads threads({.most_waiting = std::chrono::minutes(1), .patience = std::chrono::hours(1)});
  TableCompiler compiler(threads, {});
  const HangingJob hanging(threads);
  compiler.post(kFile, file_, kUser);
  const auto compiled = compiler.compile(kFile, file_, kOtherUser, rules_);
  ASSERT_TRUE(compiled);
  EXPECT_TRUE(compiled->ok());
}

TEST_F(TableCompilerTest, AUserWhoseFilesHangSpoilsNoTableOfOthers) {
  FileThreads threads(
      {.most_waiting = std::chrono::minutes(1), .patience = Nanoseconds(0), .hung_of_user = 1});
  TableCompiler compiler(threads, {});
  const HangingJob hanging(threads);
  EXPECT_FALSE(compiler.compile(kFile, file_, kUser, rules_));
  const auto compiled = compiler.compile(kFile, file_, kOtherUser, rules_);
  ASSERT_TRUE(compiled);
  EXPECT_TRUE(compiled->ok());
}

TEST_F(TableCompilerTest, FilesOfOneUserLeaveTimeForOthers) {
  // Small, so that many fit into what is waited for also where this program runs slowly.
  const auto small = program("/bin/true");
  EXPECT_TRUE(succeeds_once([&] {
    FileThreads threads({.most_waiting = std::chrono::milliseconds(200)});
    TableCompiler compiler(threads, {});
    std::uint32_t id = 1;
    while (compiler.compile(FileId{id}, small, kUser, rules_)) ++id;
    return compiler.compile(FileId{id + 1}, small, kOtherUser, rules_).has_value();
  }));
}

TEST_F(TableCompilerTest, ASuspectIsLeftAlone) {
  SuspectFiles suspects;
  suspects.blame(FileGuard::number_of(*file_, FileUse::unwind_table), monotonic_now());
  FileThreads threads(kWaits);
  TableCompiler compiler(threads, {.limits = {}, .suspects = &suspects});
  const auto compiled = compiler.compile(kFile, file_, kUser, rules_);
  ASSERT_TRUE(compiled);
  EXPECT_FALSE(compiled->ok());
}

}  // namespace
}  // namespace ddprof
