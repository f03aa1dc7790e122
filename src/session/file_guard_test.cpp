#include "session/file_guard.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace ddprof {
namespace {

using namespace std::chrono_literals;

CodeFile file_at(std::string path) { return {.kind = CodeFile::Kind::elf, .path = std::move(path)}; }

Result<int> read_well() { return 1; }

TEST(FileGuard, AnAllocationThatFailsIsAnErrorOfThatFileAlone) {
  SuspectFiles suspects;
  const FileGuard guard{{}, &suspects};
  const CodeFile bad = file_at("/bad");
  const auto read = guard.read(bad, FileUse::symbols, []() -> Result<int> { throw std::bad_alloc(); });
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "read symbol table: too large to read with --max-memory 256");
  // Nobody tries again, for the same.
  EXPECT_FALSE(guard.read(bad, FileUse::symbols, read_well).ok());
  EXPECT_TRUE(guard.read(bad, FileUse::debug_info, read_well).ok());
  EXPECT_TRUE(guard.read(file_at("/good"), FileUse::symbols, read_well).ok());
}

TEST(FileGuard, ALengthThatNoMemoryHasIsAnErrorToo) {
  const FileGuard guard{{std::uint64_t{64} << 20U}};
  const auto read = guard.read(file_at("/bad"), FileUse::unwind_table, []() -> Result<std::size_t> {
    return std::vector<int>(~std::size_t{0} / 2).size();
  });
  EXPECT_EQ(read.error().message, "read unwind information: too large to read with --max-memory 64");
}

TEST(FileGuard, WhatAWorkerEndedInTheMiddleOfIsLeftAloneByTheNext) {
  auto suspects = std::make_unique<SuspectFiles>();
  const FileGuard guard{{}, suspects.get()};
  const CodeFile bad = file_at("/bad");
  // As a worker leaves it that ends in the middle.
  suspects->begin(FileGuard::number_of(bad, FileUse::debug_info));
  suspects->blame_unfinished(monotonic_now());
  const auto read = guard.read(bad, FileUse::debug_info, read_well);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("left alone"), std::string::npos);
  EXPECT_TRUE(guard.read(bad, FileUse::symbols, read_well).ok());
  // The file is another one when its content is.
  CodeFile changed = file_at("/bad");
  const std::byte id{1};
  changed.build_id = BuildId({&id, 1});
  EXPECT_TRUE(guard.read(changed, FileUse::debug_info, read_well).ok());
}

TEST(SuspectFiles, AreTriedAgainAfterAWhileThatGrows) {
  SuspectFiles suspects;
  suspects.blame(5, 1min);
  EXPECT_TRUE(suspects.is_left_alone(5, 10min));
  EXPECT_FALSE(suspects.is_left_alone(5, 11min));
  EXPECT_FALSE(suspects.is_left_alone(6, 1min));
  suspects.blame(5, 11min);
  EXPECT_TRUE(suspects.is_left_alone(5, 50min));
  EXPECT_FALSE(suspects.is_left_alone(5, 51min));
}

TEST(SuspectFiles, AWorkerThatEndsInOrderBlamesNothing) {
  SuspectFiles suspects;
  suspects.begin(5);
  suspects.end(5);
  suspects.begin(6);
  suspects.forget_unfinished();
  suspects.blame_unfinished(1min);
  EXPECT_FALSE(suspects.is_left_alone(5, 1min));
  EXPECT_FALSE(suspects.is_left_alone(6, 1min));
}

TEST(SuspectFiles, TheOldestMakesRoom) {
  SuspectFiles suspects;
  for (std::uint64_t file = 1; file <= SuspectFiles::kMaxSuspects + 1; ++file)
    suspects.blame(file, std::chrono::seconds(file));
  EXPECT_FALSE(suspects.is_left_alone(1, 2min));
  EXPECT_TRUE(suspects.is_left_alone(2, 2min));
  EXPECT_TRUE(suspects.is_left_alone(SuspectFiles::kMaxSuspects + 1, 2min));
}

}  // namespace
}  // namespace ddprof
