#include "session/table_compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <thread>
#include <tuple>

#include "base/clock.hpp"
#include "base/scratch_fixture.hpp"
#include "base/unique_fd.hpp"
#include "unwind/compile.hpp"

namespace ddprof {
namespace {

std::shared_ptr<const CodeFile> program(const std::string& path, std::optional<std::uint32_t> owner) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  CodeFile file{.kind = CodeFile::Kind::elf, .path = path, .owner = owner};
  file.image = MappedRegion::map_file(fd.get()).value_or({});
  file.elf = ElfFile::parse(file.image.bytes()).value();
  return std::make_shared<const CodeFile>(std::move(file));
}

// The C library with a hole behind it: too large to be compiled at once, and soon compiled also where code
// runs slowly.
std::shared_ptr<const CodeFile> large_program(std::optional<std::uint32_t> owner = {},
                                              std::size_t bytes = TableCompiler::kSmallFile + 1) {
  Dl_info library{};
  ::dladdr(reinterpret_cast<const void*>(&::gnu_get_libc_version), &library);
  const ScratchFolder folder;
  std::filesystem::copy_file(library.dli_fname, folder.path("large"));
  std::filesystem::resize_file(folder.path("large"), bytes);
  return program(folder.path("large"), owner);
}

constexpr FileId kFile{1};

class TableCompilerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GT(file_->image.size(), TableCompiler::kSmallFile); }

  std::shared_ptr<const CodeFile> file_ = large_program();
  RuleDictionary rules_;
};

TEST_F(TableCompilerTest, ATableOfAnotherThreadIsThatOfThisOne) {
  RuleDictionary own_rules;
  own_rules.intern({1, 2, 3, 4});  // other numbers than those of the thread
  const UnwindTable expected = compile_unwind_table(*file_->elf, own_rules, {});
  rules_.intern({4, 3, 2, 1});
  TableCompiler compiler({}, std::chrono::minutes(1));
  const auto compiled = compiler.compile(kFile, file_, rules_);
  ASSERT_TRUE(compiled && compiled->ok());
  const UnwindTable& table = compiled->value();
  ASSERT_EQ(table.row_count(), expected.row_count());
  ASSERT_GT(table.row_count(), 1000U);
  ASSERT_EQ(table.rows().size(), expected.rows().size());
  for (std::size_t row = 0; row < table.rows().size(); ++row) {
    const ddprof_unwind_rule& rule = rules_[RuleIndex{table.rows()[row].rule}];
    const ddprof_unwind_rule& other = own_rules[RuleIndex{expected.rows()[row].rule}];
    ASSERT_EQ(std::memcmp(&rule, &other, sizeof rule), 0) << row;
  }
}

TEST_F(TableCompilerTest, SmallFilesAreCompiledByTheThreadThatAsks) {
  TableCompiler compiler({}, std::chrono::minutes(1));
  ASSERT_TRUE(compiler.compile(kFile, large_program({}, TableCompiler::kSmallFile), rules_));
  EXPECT_EQ(compiler.finished(), 0U);
  ASSERT_TRUE(compiler.compile(FileId{2}, file_, rules_));
  EXPECT_EQ(compiler.finished(), 1U);
}

TEST_F(TableCompilerTest, EndsWithWorkInItsQueue) {
  TableCompiler compiler({}, Nanoseconds(0));
  for (std::uint32_t id = 1; id < 4; ++id) std::ignore = compiler.compile(FileId{id}, file_, rules_);
}

// What depends on when threads run is tried again: without the rule it would never be so.
template <typename Try>
bool succeeds_once(Try attempt) {
  for (int left = 20; left > 0; --left) {
    if (attempt()) return true;
  }
  return false;
}

TEST_F(TableCompilerTest, WhatTakesTooLongIsThereLater) {
  EXPECT_TRUE(succeeds_once([this] {
    TableCompiler compiler({}, Nanoseconds(0));
    if (compiler.compile(kFile, file_, rules_)) return false;  // it was there before we looked
    while (compiler.finished() == 0) std::this_thread::yield();
    const auto compiled = compiler.compile(kFile, file_, rules_);
    EXPECT_EQ(compiler.finished(), 1U);
    return compiled && compiled->ok() && compiled->value().row_count() > 1000U;
  }));
}

TEST_F(TableCompilerTest, AnotherOwnersFileComesBeforeTheSecondOfOne) {
  const auto other = large_program(1);
  EXPECT_TRUE(succeeds_once([&] {
    TableCompiler compiler({}, Nanoseconds(0));
    std::ignore = compiler.compile(FileId{1}, file_, rules_);  // which the thread begins with
    std::ignore = compiler.compile(FileId{2}, file_, rules_);
    std::ignore = compiler.compile(FileId{3}, other, rules_);
    while (compiler.finished() < 2) std::this_thread::yield();
    return compiler.compile(FileId{3}, other, rules_).has_value();
  }));
}

TEST_F(TableCompilerTest, LargeFilesLeaveTimeForSmallOnes) {
  const auto small = std::make_shared<const CodeFile>(CodeFile{.owner = 0, .elf = file_->elf});
  const auto large = large_program(0);
  const Nanoseconds began = monotonic_now();
  std::ignore = compile_unwind_table(*large->elf, rules_, {});
  const Nanoseconds one_takes = monotonic_now() - began;
  EXPECT_TRUE(succeeds_once([&] {
    TableCompiler compiler({}, one_takes);
    for (std::uint32_t id = 1; id < 4; ++id) std::ignore = compiler.compile(FileId{id}, large, rules_);
    return compiler.compile(FileId{4}, small, rules_).has_value();
  }));
}

TEST_F(TableCompilerTest, FilesOfOneOwnerLeaveTimeForOthers) {
  // Small, so that many fit into what is waited for also where this program runs slowly.
  const auto one = program("/bin/true", 1), another = program("/bin/true", 2);
  EXPECT_TRUE(succeeds_once([&] {
    TableCompiler compiler({}, std::chrono::milliseconds(200));
    std::uint32_t id = 1;
    while (compiler.compile(FileId{id}, one, rules_)) ++id;
    return compiler.compile(FileId{id + 1}, another, rules_).has_value();
  }));
}

TEST_F(TableCompilerTest, ASuspectIsLeftAlone) {
  SuspectFiles suspects;
  suspects.blame(FileGuard::number_of(*file_, FileUse::unwind_table), monotonic_now());
  TableCompiler compiler({.limits = {}, .suspects = &suspects}, std::chrono::minutes(1));
  const auto compiled = compiler.compile(kFile, file_, rules_);
  ASSERT_TRUE(compiled);
  EXPECT_FALSE(compiled->ok());
}

}  // namespace
}  // namespace ddprof
